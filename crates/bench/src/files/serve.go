// Serves the files below a directory with http.ServeFile.
package main

import (
	"log"
	"net/http"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: serve ADDRESS DIR")
	}
	root := os.Args[2]
	serve := func(response http.ResponseWriter, request *http.Request) {
		// The path of the request is clean: the multiplexer redirects all others.
		name := filepath.Join(root, filepath.FromSlash(request.URL.Path))
		http.ServeFile(response, request, name)
	}
	http.HandleFunc("/", serve)
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
