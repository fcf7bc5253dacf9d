package main

import (
	"context"
	"errors"
	"log"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// add charges more to a bill. If that fails, settle corrects the sum.
func add(b *core.Bill, permits int) {
	if permits == 0 {
		return
	}
	if err := b.Add(context.Background(), permits); err != nil {
		log.Printf("A bill has not %d more: %v", permits, err)
	}
}

// settle settles a bill. While Redis does not answer, it repeats that for a minute.
func settle(b *core.Bill, used int) {
	err := b.Settle(context.Background(), used)
	for end := time.Now().Add(time.Minute); errors.Is(err, core.ErrStore) && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		err = b.Settle(context.Background(), used)
	}
	if err != nil {
		log.Printf("A bill is not settled at %d: %v", used, err)
	}
}
