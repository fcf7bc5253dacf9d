// Command pictures draws what each algorithm does with a bursty and with a steady client: one SVG
// per algorithm, from a real run of 30 seconds with the limiter that counts in this process.
//
//	go run ./pictures [-out DIRECTORY]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

func main() {
	out := flag.String("out", "algorithms", "the directory for the pictures")
	flag.Parse()
	if err := pictures(*out); err != nil {
		log.Fatal(err)
	}
}

func pictures(out string) error {
	limiter, err := core.New(core.Options{})
	if err != nil {
		return err
	}
	defer limiter.Close()
	algorithms, clients := algorithms(limiter), clients()
	results, err := run(context.Background(), nextBoundary(time.Now()), algorithms, clients)
	if err != nil {
		return err
	}
	for i, a := range algorithms {
		graphs := make([]graph, len(clients))
		for j := range clients {
			graphs[j] = graphOf(results[i][j])
		}
		path := filepath.Join(out, a.file+".svg")
		if err := drawPicture(path, a, clients, graphs); err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
