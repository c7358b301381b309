// A round trip of the AWS SDK for Go v2 against a server:
//
//	aws-sdk-go URL ACCESS_KEY SECRET_KEY FILE TREE
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

var bucket = aws.String("aws-sdk-go")

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(condition bool, message string) {
	if !condition {
		panic(message)
	}
}

type session struct {
	context context.Context
	client  *s3.Client
}

func (s session) put(key string, content string) *s3.PutObjectOutput {
	return must(s.client.PutObject(s.context, &s3.PutObjectInput{
		Bucket: bucket, Key: &key, Body: strings.NewReader(content),
	}))
}

func (s session) get(key string, version *string) string {
	object := must(s.client.GetObject(s.context, &s3.GetObjectInput{
		Bucket: bucket, Key: &key, VersionId: version,
	}))
	return string(must(io.ReadAll(object.Body)))
}

func (s session) parts(file string) {
	content := must(os.ReadFile(file))
	key := aws.String("big")
	must(manager.NewUploader(s.client).Upload(s.context, &s3.PutObjectInput{
		Bucket: bucket, Key: key, Body: bytes.NewReader(content),
	}))
	buffer := manager.NewWriteAtBuffer(nil)
	must(manager.NewDownloader(s.client).Download(s.context, buffer, &s3.GetObjectInput{
		Bucket: bucket, Key: key,
	}))
	expect(bytes.Equal(buffer.Bytes(), content), "the downloaded parts differ")
	must(s.client.CopyObject(s.context, &s3.CopyObjectInput{
		Bucket: bucket, Key: aws.String("copy"), CopySource: aws.String(*bucket + "/big"),
	}))
	expect(s.get("copy", nil) == string(content), "the copy differs")
	// A body of unknown length, in parts.
	reader, writer := io.Pipe()
	go func() {
		_, err := writer.Write(content)
		writer.CloseWithError(err)
	}()
	must(manager.NewUploader(s.client).Upload(s.context, &s3.PutObjectInput{
		Bucket: bucket, Key: aws.String("streamed"), Body: reader,
	}))
	expect(s.get("streamed", nil) == string(content), "the streamed object differs")
}

func (s session) tree(folder string) {
	keys := map[string]string{}
	check(filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		key := "tree/" + must(filepath.Rel(folder, path))
		keys[key] = string(must(os.ReadFile(path)))
		s.put(key, keys[key])
		return nil
	}))
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{
		Bucket: bucket, Prefix: aws.String("tree/"), MaxKeys: aws.Int32(300),
	})
	var listed []types.ObjectIdentifier
	for pages.HasMorePages() {
		for _, object := range must(pages.NextPage(s.context)).Contents {
			content, sent := keys[*object.Key]
			expect(sent, "listed unknown key "+*object.Key)
			expect(s.get(*object.Key, nil) == content, "different content of "+*object.Key)
			listed = append(listed, types.ObjectIdentifier{Key: object.Key})
		}
	}
	expect(len(listed) == 1000, "the listing has not 1000 objects")
	deleted := must(s.client.DeleteObjects(s.context, &s3.DeleteObjectsInput{
		Bucket: bucket, Delete: &types.Delete{Objects: listed},
	}))
	expect(len(deleted.Deleted) == 1000 && len(deleted.Errors) == 0, "not all were deleted")
}

func request(method string, url string, body string) string {
	request := must(http.NewRequest(method, url, strings.NewReader(body)))
	response := must(http.DefaultClient.Do(request))
	content := string(must(io.ReadAll(response.Body)))
	expect(response.StatusCode == 200, fmt.Sprint(response.Status, content))
	return content
}

func (s session) presigned() {
	signer := s3.NewPresignClient(s.client)
	key := aws.String("presigned ä+&")
	put := must(signer.PresignPutObject(s.context, &s3.PutObjectInput{Bucket: bucket, Key: key}))
	request(put.Method, put.URL, "by URL")
	get := must(signer.PresignGetObject(s.context, &s3.GetObjectInput{Bucket: bucket, Key: key}))
	expect(request(get.Method, get.URL, "") == "by URL", "the presigned GET differs")
}

func (s session) versions() {
	must(s.client.PutBucketVersioning(s.context, &s3.PutBucketVersioningInput{
		Bucket: bucket,
		VersioningConfiguration: &types.VersioningConfiguration{
			Status: types.BucketVersioningStatusEnabled,
		},
	}))
	first, second := s.put("versions", "first"), s.put("versions", "second")
	expect(s.get("versions", first.VersionId) == "first", "the first version differs")
	expect(s.get("versions", second.VersionId) == "second", "the second version differs")
	listed := must(s.client.ListObjectVersions(s.context, &s3.ListObjectVersionsInput{
		Bucket: bucket, Prefix: aws.String("versions"),
	}))
	expect(len(listed.Versions) == 2, "not two versions are listed")
}

func (s session) conditions() {
	key := aws.String("conditions")
	create := func() error {
		_, err := s.client.PutObject(s.context, &s3.PutObjectInput{
			Bucket: bucket, Key: key, Body: strings.NewReader("x"), IfNoneMatch: aws.String("*"),
		})
		return err
	}
	check(create())
	expect(strings.Contains(fmt.Sprint(create()), "PreconditionFailed"), "a second create succeeds")
	for _, algorithm := range []types.ChecksumAlgorithm{
		types.ChecksumAlgorithmCrc32, types.ChecksumAlgorithmCrc32c,
		types.ChecksumAlgorithmCrc64nvme, types.ChecksumAlgorithmSha1,
		types.ChecksumAlgorithmSha256,
	} {
		must(s.client.PutObject(s.context, &s3.PutObjectInput{
			Bucket: bucket, Key: key, Body: strings.NewReader("checked"),
			ChecksumAlgorithm: algorithm,
		}))
		object := must(s.client.GetObject(s.context, &s3.GetObjectInput{
			Bucket: bucket, Key: key, ChecksumMode: types.ChecksumModeEnabled,
		}))
		// The SDK verifies the checksum of the body.
		expect(string(must(io.ReadAll(object.Body))) == "checked", "the checked object differs")
	}
}

func (s session) removeAll() {
	pages := s3.NewListObjectVersionsPaginator(s.client, &s3.ListObjectVersionsInput{
		Bucket: bucket,
	})
	var all []types.ObjectIdentifier
	for pages.HasMorePages() {
		page := must(pages.NextPage(s.context))
		for _, version := range page.Versions {
			all = append(all, types.ObjectIdentifier{Key: version.Key, VersionId: version.VersionId})
		}
	}
	must(s.client.DeleteObjects(s.context, &s3.DeleteObjectsInput{
		Bucket: bucket, Delete: &types.Delete{Objects: all},
	}))
	must(s.client.DeleteBucket(s.context, &s3.DeleteBucketInput{Bucket: bucket}))
}

func main() {
	context := context.Background()
	keys := credentials.NewStaticCredentialsProvider(os.Args[2], os.Args[3], "")
	settings := must(config.LoadDefaultConfig(context, config.WithRegion("us-east-1"),
		config.WithBaseEndpoint(os.Args[1]), config.WithCredentialsProvider(keys)))
	s := session{context, s3.NewFromConfig(settings, func(options *s3.Options) {
		options.UsePathStyle = true
	})}
	must(s.client.CreateBucket(context, &s3.CreateBucketInput{Bucket: bucket}))
	s.parts(os.Args[4])
	s.tree(os.Args[5])
	s.presigned()
	s.versions()
	s.conditions()
	s.removeAll()
	fmt.Println("aws-sdk-go-v2", aws.SDKVersion)
}
