package harness

import (
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// The reasons why redis-benchmark cannot be used. It sends the arguments of its command line, which
// cannot hold zero bytes. Its option -x does not help.
var (
	ErrNoBenchmark = errors.New("redis-benchmark is not installed")
	ErrZeroBytes   = errors.New("redis-benchmark cannot send the zero bytes in this script's argument")
)

// RedisBenchmark runs redis-benchmark -c 8 -P 64 with one recorded call, each time for a random one
// of n subjects, and returns calls per second.
func RedisBenchmark(addr string, call []string, subject string, n, total int) (float64, error) {
	program, err := exec.LookPath("redis-benchmark")
	if err != nil {
		return 0, ErrNoBenchmark
	}
	if strings.ContainsRune(strings.Join(call, ""), 0) {
		return 0, ErrZeroBytes
	}
	host, port, _ := net.SplitHostPort(addr)
	call, err = anySubject(call, subject)
	if err != nil {
		return 0, err
	}
	args := []string{"-h", host, "-p", port, "-c", "8", "-P", "64", "-r", strconv.Itoa(n), "-n", strconv.Itoa(total), "--csv"}
	out, err := exec.Command(program, append(args, call...)...).Output()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w", err)
	}
	return readBenchmark(string(out))
}

// anySubject replaces the digits of a subject by __rand_int__, which redis-benchmark replaces by a
// random number.
func anySubject(call []string, subject string) ([]string, error) {
	call = slices.Clone(call)
	pattern := subject[:len(subject)-Digits] + "__rand_int__"
	found := false
	for i, arg := range call {
		call[i] = strings.ReplaceAll(arg, subject, pattern)
		found = found || call[i] != arg
	}
	if !found {
		return nil, fmt.Errorf("the subject %s is not in the call %q", subject, call)
	}
	return call, nil
}

// readBenchmark reads the last line of the table that redis-benchmark prints: the test, and calls
// per second.
func readBenchmark(out string) (float64, error) {
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) == 0 || len(rows[len(rows)-1]) < 2 {
		return 0, fmt.Errorf("redis-benchmark printed %q: %w", out, err)
	}
	return strconv.ParseFloat(rows[len(rows)-1][1], 64)
}
