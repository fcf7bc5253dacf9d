package scriptclock

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Client is a client of a real Redis whose scripts get their time from the test. The core takes it
// for a UniversalClient of an unknown type, of which it uses only Process.
type Client struct {
	redis.UniversalClient
	now    func() int64
	change func(text string) (string, error)
	mu     sync.Mutex
	texts  map[string]string // the scripts as they run here, by the SHA-1 of their own text
}

// NewClient returns a client that changes scripts by [TakeTime] or [TakeTimeAndExpire]. now returns
// their time, in microseconds since the epoch. It must be ahead of the server's own: the server drops
// whatever expires before that.
func NewClient(client redis.UniversalClient, now func() int64, change func(text string) (string, error)) *Client {
	return &Client{UniversalClient: client, now: now, change: change, texts: make(map[string]string)}
}

// Process implements redis.UniversalClient.
func (c *Client) Process(ctx context.Context, cmd redis.Cmder) error {
	args := slices.Clone(cmd.Args())
	text, isScript, err := c.script(args)
	if err != nil {
		cmd.SetErr(err)
		return err
	}
	if isScript {
		args[0], args[1] = "eval", text
		args = append(args, c.now())
	}
	done := redis.NewCmd(ctx, args...)
	err = c.UniversalClient.Process(ctx, done)
	cmd.SetErr(err)
	switch cmd := cmd.(type) {
	case interface{ SetVal(any) }:
		cmd.SetVal(done.Val())
	case interface{ SetVal([]string) }:
		cmd.SetVal(Texts(done.Val()))
	}
	return err
}

// Texts returns a reply that is a list of integers and strings.
func Texts(reply any) (texts []string) {
	values, _ := reply.([]any)
	for _, value := range values {
		texts = append(texts, fmt.Sprint(value))
	}
	return texts
}

// script returns the text of a script call in the form in which it is to run.
func (c *Client) script(args []any) (text string, isScript bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch args[0] {
	case "eval":
		sha := redis.NewScript(args[1].(string)).Hash()
		if text, err = c.change(args[1].(string)); err == nil {
			c.texts[sha] = text
		}
		return text, true, err
	case "evalsha":
		text, known := c.texts[args[1].(string)]
		if !known { // though the server may know it from a client that has the real time
			return "", true, unknownScript{}
		}
		return text, true, nil
	}
	return "", false, nil
}

// unknownScript is the error of a server for EVALSHA of a script that it has not seen.
type unknownScript struct{}

func (unknownScript) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }

// RedisError implements redis.Error.
func (unknownScript) RedisError() {}
