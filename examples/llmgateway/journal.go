package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/accesslimit/accesslimit/core"
)

// journal is a file with what was done with bills, a line of JSON for each note. A bill whose process
// was killed can be settled later, by its token.
type journal struct {
	mu    sync.Mutex
	file  *os.File
	bills atomic.Int64
}

// note is a line of the journal. Each change is noted twice: before it is made, and with its outcome.
type note struct {
	Bill    int64  // its number in this process
	Do      string // open, add or settle
	Permits int
	Counter string `json:",omitempty"` // of open, as the next two
	Subject string `json:",omitempty"`
	Token   string `json:",omitempty"`
	Outcome string `json:",omitempty"` // done, refused, unknown, or an error by which nothing was done
}

func openJournal(name string) (*journal, error) {
	file, err := os.OpenFile(cmp.Or(name, os.DevNull), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &journal{file: file}, err
}

func (j *journal) write(n note) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := json.NewEncoder(j.file).Encode(n); err != nil {
		log.Print(err)
	}
}

// bill is a core.Bill whose changes are noted.
type bill struct {
	*core.Bill
	journal *journal
	number  int64
}

func (j *journal) open(ctx context.Context, m meter, subject string, estimate int) (*bill, core.Decision, error) {
	n := note{Bill: j.bills.Add(1), Do: "open", Permits: estimate, Counter: m.name, Subject: subject}
	j.write(n)
	opened, d, err := m.counter.Open(ctx, subject, estimate)
	n.Token, n.Outcome = opened.Token(), outcome(err)
	if err == nil && !d.Allowed {
		n.Outcome = "refused"
	}
	j.write(n)
	return &bill{opened, j, n.Bill}, d, err
}

// outcome returns what is known of a change that ended with an error, or without.
func outcome(err error) string {
	var failed *core.StoreError
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &failed) && failed.Class.MayHaveCharged(),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "unknown"
	}
	return err.Error()
}

// add charges more to the bill. If that fails, settle corrects the sum.
func (b *bill) add(permits int) {
	if permits > 0 {
		_ = b.change("add", permits, b.Add)
	}
}

// settle settles the bill. While Redis does not answer, it repeats that for a minute.
func (b *bill) settle(used int) {
	err := b.change("settle", used, b.Settle)
	for end := time.Now().Add(time.Minute); errors.Is(err, core.ErrStore) && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		err = b.change("settle", used, b.Settle)
	}
	if err != nil {
		log.Printf("A bill is not settled at %d: %v", used, err)
	}
}

func (b *bill) change(what string, permits int, do func(context.Context, int) error) error {
	n := note{Bill: b.number, Do: what, Permits: permits}
	b.journal.write(n)
	err := do(context.Background(), permits)
	n.Outcome = outcome(err)
	b.journal.write(n)
	if err != nil {
		log.Printf("%s %d: %v", what, permits, err)
	}
	return err
}
