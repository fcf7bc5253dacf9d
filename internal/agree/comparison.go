package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// length is how many operations a history has.
	length = 100
	// most is how many histories that differ are printed.
	most = 5
	// ahead is how many histories a driver is asked for before the first is compared.
	ahead = 4
)

// comparison is of two drivers.
type comparison struct {
	was, is     *driver
	seed        uint64
	differences []*difference
	lines, left int   // so many were compared so far, and so many not
	unwanted    []int // the histories that differ in a way that is not listed
}

func newComparison(was, is, listed string, seed uint64) (c *comparison, err error) {
	c = &comparison{seed: seed}
	if c.differences, err = readDifferences(listed); err != nil {
		return nil, err
	}
	if c.was, err = start(was); err != nil {
		return nil, err
	}
	if c.is, err = start(is); err != nil {
		c.was.close()
	}
	return c, err
}

func (c *comparison) close() {
	c.was.close()
	c.is.close()
}

// run compares that many histories.
func (c *comparison) run(histories int) error {
	began, asked, sent := time.Now(), 0, [][]string(nil) // what the old version has replied, and the new one has not
	for number := 0; number < histories && len(c.unwanted) < most; number++ {
		for ; asked < min(histories, number+2*ahead); asked++ {
			c.was.ask(c.request(asked, nil) + "\n")
		}
		for next := number + len(sent); next < min(histories, number+ahead); next++ {
			was, err := c.repeat(next, nil)
			if err != nil {
				return err
			}
			sent = append(sent, was)
		}
		is, err := c.is.reply()
		if err != nil {
			return fmt.Errorf("history %d in the new version: %w", number, err)
		}
		if at := c.differ(sent[0], is, true); at >= 0 {
			c.unwanted = append(c.unwanted, number)
			fmt.Printf("history %d differs, which was found after %d operations\n", number, number*length+at)
		}
		sent = sent[1:]
		if len(c.unwanted) == most {
			for range sent {
				_, _ = c.is.reply()
			}
			for range asked - number - 1 - len(sent) {
				_, _ = c.was.reply()
			}
		}
	}
	fmt.Printf("%d operations in %.0f s; %d lines were compared, and %d not\n", asked*length, time.Since(began).Seconds(), c.lines, c.left)
	for _, d := range c.differences {
		fmt.Printf("%7d times: %s\n", d.met, d.why)
	}
	repeated := 0
	for _, number := range c.unwanted {
		differs, err := c.print(number)
		if err != nil {
			return err
		}
		if differs {
			repeated++
		}
	}
	if repeated > 0 {
		return fmt.Errorf("the versions differ (seed %d); list what is wanted in internal/agree/differences.txt, with its reason", c.seed)
	}
	return nil
}

// request returns the request for a history without some of its operations.
func (c *comparison) request(number int, without []int) string {
	return fmt.Sprintf("%d %d %d %s", c.seed, number, length, strings.Trim(fmt.Sprint(without), "[]"))
}

// repeat reads a history that the old version was asked for, and asks the new version for the same. In
// that, each operation comes at the same time, even if an earlier answer was another one.
func (c *comparison) repeat(number int, without []int) (was []string, err error) {
	if was, err = c.was.reply(); err != nil {
		return nil, fmt.Errorf("history %d in the old version: %w", number, err)
	}
	request := c.request(number, without) + " at"
	for _, line := range was {
		at, _, _ := strings.Cut(strings.TrimPrefix(line, "+"), "ns ")
		request += " " + at
	}
	c.is.ask(request + "\n")
	return was, nil
}

// again returns a history without some of its operations, in both versions.
func (c *comparison) again(number int, without []int) (was, is []string, err error) {
	c.was.ask(c.request(number, without) + "\n")
	if was, err = c.repeat(number, without); err != nil {
		return nil, nil, err
	}
	if is, err = c.is.reply(); err != nil {
		return nil, nil, fmt.Errorf("history %d in the new version: %w", number, err)
	}
	return was, is, nil
}

// differ returns the first line in which two histories differ in a way that is not listed, or -1.
func (c *comparison) differ(was, is []string, count bool) (line int) {
	for line := range min(len(was), len(is)) {
		if count {
			c.lines++
		}
		if was[line] == is[line] {
			continue
		}
		d := find(c.differences, was, is, line)
		if d == nil {
			return line
		}
		if count {
			d.met++
		}
		if d.ends {
			if count {
				c.left += len(was) - line - 1
			}
			return -1
		}
	}
	if len(was) != len(is) {
		return min(len(was), len(is)) - 1
	}
	return -1
}

// print prints a history that differs, without the operations that do not matter. It reports whether the
// history differs again: one that does not depends on chance.
func (c *comparison) print(number int) (differs bool, err error) {
	var without []int
	for chunk := length; chunk > 0; chunk /= 2 {
		for begin := 0; begin < length; begin += chunk {
			fewer := slices.Clone(without)
			for id := begin; id < min(begin+chunk, length); id++ {
				if !slices.Contains(fewer, id) {
					fewer = append(fewer, id)
				}
			}
			if len(fewer) == len(without) {
				continue
			}
			was, is, err := c.again(number, fewer)
			if err != nil {
				return false, err
			}
			if c.differ(was, is, false) >= 0 {
				without = fewer
			}
		}
	}
	was, is, err := c.again(number, without)
	if err != nil {
		return false, err
	}
	line := c.differ(was, is, false)
	if line < 0 {
		fmt.Printf("\nhistory %d depends on chance\n", number)
		return false, nil
	}
	fmt.Printf("\nhistory %d:\n", number)
	for _, same := range was[:line] {
		fmt.Printf("    %.300s\n", same)
	}
	same := 0
	for same < min(len(was[line]), len(is[line])) && was[line][same] == is[line][same] {
		same++
	}
	fmt.Printf("    %.120s\nwas %.1000s\nis  %.1000s\n", was[line], was[line][max(0, same-80):], is[line][max(0, same-80):])
	return true, nil
}
