// Relays TCP connections with io.Copy, which splices where it can.
package main

import (
	"io"
	"log"
	"net"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: relay LISTEN TO")
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	for {
		near, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go relay(near.(*net.TCPConn), os.Args[2])
	}
}

func relay(near *net.TCPConn, to string) {
	defer near.Close()
	connection, err := net.Dial("tcp", to)
	if err != nil {
		log.Print(err)
		return
	}
	far := connection.(*net.TCPConn)
	defer far.Close()
	over := make(chan struct{})
	go func() {
		io.Copy(far, near)
		far.CloseWrite()
		close(over)
	}()
	io.Copy(near, far)
	near.CloseWrite()
	<-over
}
