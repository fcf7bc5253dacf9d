package core_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/accesslimit/accesslimit/core"
)

// What is wrong with one rule does not keep the log from saying what is wrong with another; but not of too many.
func TestComplaintsAreToldApartByRule(t *testing.T) {
	var log logbook
	limiter := newLimiter(t, core.Options{Logger: log.logger()})
	for i := range 300 {
		for range 2 {
			checkRule(limiter, newView("GET", "/"), core.Rule{Name: fmt.Sprint("rule", i), Seconds: 60, Cost: cost(-1)}, "")
		}
	}
	if n := log.count("rule=rule0 ", "Cost"); n != 1 {
		t.Errorf("the first rule is complained of %d times", n)
	}
	if n := log.count("rule=rule1 ", "Cost"); n != 1 {
		t.Errorf("the second rule is complained of %d times", n)
	}
	if n := log.count("Cost"); n != 101 {
		t.Errorf("%d lines for 300 wrong rules", n)
	}
}

// What is said later is what was so then, though a framework writes over the names that it gave.
func TestComplaintsKeepCopies(t *testing.T) {
	var log logbook
	options := deadRedis(t)
	options.Logger = log.logger()
	limiter := newLimiter(t, options)
	lent := []byte("lent")
	for range 2 {
		if _, err := limiter.MustCounter(unsafe.String(&lent[0], len(lent)), core.PerHour(5)).Allow(background, "s"); err == nil {
			t.Fatal("allowed without Redis")
		}
	}
	copy(lent, "else")
	limiter.Close()
	if log.count("latest_rule=lent") != 2 || log.count("latest_rule=else") != 0 {
		t.Error(log.text.String())
	}
}
