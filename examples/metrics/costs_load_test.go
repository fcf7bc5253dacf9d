package main

import (
	"context"
	"errors"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/outgoing"
)

// spend opens two bills, settles one, and charges a cost of which 3 permits exceed the bound of the
// debt.
func (l *load) spend(subject string) {
	ctx, tokens := context.Background(), l.limiters["redis"].MustCounter("tokens", core.PerHour(10))
	bill, _, err := tokens.Open(ctx, subject, 4)
	if err == nil {
		err = bill.Settle(ctx, 6)
	}
	if err == nil {
		_, _, err = tokens.Open(ctx, subject, 2)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := tokens.Charge(ctx, subject, 15); !errors.Is(err, core.ErrDebtExceeded) {
		l.t.Fatalf("Charge: %v", err)
	}
}

// goOut makes a call that the server refuses.
func (l *load) goOut(key string) {
	turns, err := outgoing.New(l.limiters["redis"], outgoing.Rule{Name: "api", Limit: core.PerHour(1000).Bucket(10)})
	if err != nil {
		l.t.Fatal(err)
	}
	turn, err := turns.Take(context.Background(), key)
	if err != nil {
		l.t.Fatal(err)
	}
	turn.Answered(outgoing.Answer{Refused: true, Wait: time.Hour})
	turn.Release()
}
