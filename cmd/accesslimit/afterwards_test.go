package main

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
)

// withLimiter passes a limiter of a service to do, and closes it.
func withLimiter(ts *testscript.TestScript, do func(*core.Limiter) error) {
	url, err := redis.ParseURL(ts.Getenv("REDIS_URL"))
	ts.Check(err)
	client := redis.NewClient(url)
	defer client.Close()
	limiter, err := core.New(core.Options{Redis: client, Timeout: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	ts.Check(err)
	defer limiter.Close()
	ts.Check(do(limiter))
}

// spend charges a cost that is known afterwards to a limit of 100 an hour: spend tokens user:alice 150.
func spend(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: spend NAME SUBJECT N")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	withLimiter(ts, func(l *core.Limiter) error {
		_, err := l.MustCounter(args[0], core.PerHour(100)).Charge(context.Background(), args[1], n)
		return err
	})
}

// goes makes a call that goes out: goes RULE KEY.
func goes(ts *testscript.TestScript, neg bool, args []string) {
	goOut(ts, neg, args, outgoing.Answer{})
}

// pause makes a call that goes out, which the server refuses for ten minutes: pause RULE KEY.
func pause(ts *testscript.TestScript, neg bool, args []string) {
	goOut(ts, neg, args, outgoing.Answer{Refused: true, Wait: 10 * time.Minute})
}

func goOut(ts *testscript.TestScript, neg bool, args []string, a outgoing.Answer) {
	if neg || len(args) != 2 {
		ts.Fatalf("name a rule and a key")
	}
	withLimiter(ts, func(l *core.Limiter) error {
		turns, err := outgoing.New(l, outgoing.Rule{Name: args[0], Limit: core.PerHour(100).Bucket(10)})
		if err != nil {
			return err
		}
		turn, err := turns.Take(context.Background(), args[1])
		if err != nil {
			return err
		}
		turn.Answered(a)
		turn.Release()
		return nil
	})
}
