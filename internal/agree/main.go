// Command agree compares two versions of the library: see run, which builds the driver into each. Both
// play the same random histories. The histories that differ are printed, as short as they can be made,
// unless differences.txt lists how they differ.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	was, is := flag.String("was", "", "the driver of the old version"), flag.String("is", "", "the driver of the new version")
	operations, seed := flag.Int("ops", 1_000_000, "how many operations to compare"), flag.Uint64("seed", 1, "by which histories are drawn")
	listed := flag.String("differences", "", "the file of the differences that are wanted")
	flag.Parse()
	c, err := newComparison(*was, *is, *listed, *seed)
	if err == nil {
		err = c.run(max(1, *operations/length))
		c.close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agree:", err)
		os.Exit(1)
	}
}
