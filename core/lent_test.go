package core_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/internal/tally"
	"github.com/accesslimit/accesslimit/core/operate"
)

// lender lends strings as a framework does that uses one buffer for all requests of a connection.
type lender struct {
	room []byte
	used int
}

func newLender() *lender { return &lender{room: make([]byte, 4096)} }

// lend returns the same text in the buffer.
func (l *lender) lend(text string) string {
	from := l.used
	l.used += copy(l.room[from:], text)
	return unsafe.String(&l.room[from], len(text))
}

// takeBack overwrites all that was lent.
func (l *lender) takeBack() {
	for i := range l.room {
		l.room[i] = '~'
	}
	l.used = 0
}

// kept returns the paths to every string and slice that is reachable from the arguments and lies in
// the lender's buffer. It sees everything except the variables of closures.
func (l *lender) kept(what ...any) []string {
	w := walk{lender: l, seen: make(map[place]bool), locked: make(map[sync.Locker]bool)}
	// The first use of a local time fills time.Local, for example when go-redis logs.
	w.seen[place{unsafe.Pointer(time.Local), reflect.TypeOf(time.Local)}] = true
	for _, of := range what {
		w.visit(fmt.Sprintf("%T", of), reflect.ValueOf(of))
	}
	return w.found
}

type walk struct {
	lender *lender
	seen   map[place]bool
	locked map[sync.Locker]bool
	found  []string
}

type place struct {
	at unsafe.Pointer
	of reflect.Type
}

func (w *walk) visit(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		w.look(path, unsafe.Pointer(unsafe.StringData(v.String())))
	case reflect.Slice:
		w.look(path, v.UnsafePointer())
		w.each(path, v)
	case reflect.Array:
		w.each(path, v)
	case reflect.Interface:
		w.visit(path, v.Elem())
	case reflect.Pointer:
		if at := (place{v.UnsafePointer(), v.Type()}); at.at != nil && !w.seen[at] {
			w.seen[at] = true
			w.visit(path, v.Elem())
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			w.visit(path+"[key]", entry.Key())
			w.visit(path+"[value]", entry.Value())
		}
	case reflect.Struct:
		w.fields(path, v)
	}
}

func (w *walk) look(path string, at unsafe.Pointer) {
	from := uintptr(unsafe.Pointer(&w.lender.room[0]))
	if from <= uintptr(at) && uintptr(at) < from+uintptr(len(w.lender.room)) {
		w.found = append(w.found, path)
	}
}

func (w *walk) each(path string, v reflect.Value) {
	if kind := v.Type().Elem().Kind(); reflect.Bool <= kind && kind <= reflect.Complex128 {
		return
	}
	for i := range v.Len() {
		w.visit(path+"[]", v.Index(i))
	}
}

func (w *walk) fields(path string, v reflect.Value) {
	of := v.Type()
	switch {
	case strings.Contains(of.PkgPath(), "redis/go-redis"), of.PkgPath() == "log/slog":
		return
	case of == reflect.TypeFor[sync.RWMutex](): // it has a mutex, which it holds while it is locked
		return
	case of.PkgPath() == "sync/atomic" && strings.HasPrefix(of.Name(), "Pointer["):
		if at := atomic.LoadPointer((*unsafe.Pointer)(v.FieldByName("v").Addr().UnsafePointer())); at != nil {
			w.visit(path, reflect.NewAt(of.Field(0).Type.Elem().Elem(), at))
		}
		return
	}
	defer w.lock(v)()
	for i := range v.NumField() {
		w.visit(path+"."+of.Field(i).Name, v.Field(i))
	}
}

// lock locks the mutexes of a struct, because work in the background may write to the fields that
// they guard.
func (w *walk) lock(v reflect.Value) (unlock func()) {
	var held []sync.Locker
	for i := range v.NumField() {
		var mu sync.Locker
		switch of := v.Type().Field(i).Type; {
		case !v.CanAddr():
			continue
		case of == reflect.TypeFor[sync.Mutex]():
			mu = (*sync.Mutex)(v.Field(i).Addr().UnsafePointer())
		case of == reflect.TypeFor[sync.RWMutex]():
			mu = (*sync.RWMutex)(v.Field(i).Addr().UnsafePointer())
		default:
			continue
		}
		if !w.locked[mu] {
			w.locked[mu] = true
			mu.Lock()
			held = append(held, mu)
		}
	}
	return func() {
		for _, mu := range held {
			mu.Unlock()
			delete(w.locked, mu)
		}
	}
}

// lentView is a call whose strings are all lent.
func lentView(l *lender) *fakeView {
	v := newView(l.lend("GET"), l.lend("/a/b")).as(l.lend("alice"))
	return v.with("X-Real-Ip", l.lend("203.0.113.7")).with("X-Note", l.lend("phone")).with("X-Zone", l.lend("Asia/Tokyo")).
		with("Authorization", l.lend("Bearer token")).from("10.0.0.1")
}

func lentHeader(name string) func(core.Request) string {
	return func(r core.Request) string { return r.Header(name)[0] }
}

// borrower is a limiter to which everything is lent.
type borrower struct {
	*testing.T
	limiter *core.Limiter
	lent    *lender
	heard   decisions
	events  []core.Event
	seen    []context.Context // by handlers
}

func newBorrower(t *testing.T, options core.Options) *borrower {
	b := &borrower{T: t, lent: newLender()}
	options.Identify = func(r core.Request) (string, error) { return r.Value("user").(string), nil }
	options.OnDecision = func(ctx context.Context, e core.Event) {
		b.heard.note(ctx, e)
		b.events = append(b.events, e)
	}
	options.Expose, options.Prefix = true, b.lent.lend("lent")
	options.ClientIP = core.ClientIP{TrustedProxies: []string{b.lent.lend("10.0.0.0/8")}, Header: b.lent.lend("X-Real-Ip")}
	b.limiter = newLimiter(t, options)
	b.check("New")
	return b
}

// check takes all strings back, of which none may be kept.
func (b *borrower) check(at string) {
	b.Helper()
	b.lent.takeBack()
	if found := b.lent.kept(b.limiter, b.events, b.seen, core.Kept(b.limiter)); len(found) > 0 {
		b.Fatalf("%s: lent, and kept in\n%s", at, strings.Join(found, "\n"))
	}
	for _, d := range b.heard.heard {
		if text := fmt.Sprintf("%+v", d); strings.Contains(text, "~") {
			b.Errorf("%s: OnDecision received %s", at, text)
		}
	}
}

// A framework may overwrite the strings that it lent as soon as a call is over. The core keeps none
// of them, however they reached it.
func TestNothingLentIsKept(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		b := newBorrower(t, options)
		b.callGuard()
		b.callLeasedGuard()
		b.callChecks()
		b.callHandles()
		b.operate()
		b.callOtherHandles()
	})
}

func (b *borrower) callGuard() {
	guard := newGuard(b, b.limiter,
		core.Rule{
			Name: b.lent.lend("rule"), Seconds: 60, MaxCount: 2, Message: b.lent.lend("No."), Paths: []string{b.lent.lend("/a/**")},
			Except: []string{b.lent.lend("/b")}, Methods: []string{b.lent.lend("GET")},
			Also: []core.Limit{core.PerCalendarDay(9, b.lent.lend("Europe/Berlin"))}, Ban: core.Ban{After: 1, For: time.Hour},
			Key: func(r core.Request) (string, error) { return r.Header("X-Note")[0], nil },
		},
		core.Rule{
			Limit:     core.PerCalendarMonth(5, b.lent.lend("Europe/Paris")),
			NeedLogin: true,
			LimitFor:  func(r core.Request) (core.Limit, error) { return core.PerCalendarDay(4, r.Header("X-Zone")[0]), nil },
		},
		core.Rule{Name: "log", Limit: core.PerMinute(5).Log(), Note: lentHeader("X-Note")},
		core.Rule{Name: "slot", Limit: core.Limit{Max: 5, Window: 60 * time.Second, Algorithm: core.Concurrency}},
		core.Rule{Name: "counted", Seconds: 60, Count: func(int) bool { return false }},
		core.Rule{Name: "dry", Seconds: 60, MaxCount: 1, Mode: core.DryRun, Key: core.ByHeader("X-Note")},
	)
	b.check("Guard")
	for range 3 { // the third is refused
		answer := guard.Check(lentView(b.lent))
		answer.Run(func() int { b.seen = append(b.seen, answer.Context); return ok })
		b.check("Check")
	}
}

func (b *borrower) callLeasedGuard() {
	leased := newGuard(b, b.limiter, core.Rule{Name: "leased", Seconds: 60, MaxCount: 3200, Lease: 100, Key: func(r core.Request) (string, error) {
		return r.Header("X-Note")[0], nil
	}})
	for range 3 {
		leased.Check(lentView(b.lent)).Run(func() int { return ok })
		b.check("Check with a lease")
	}
}

func (b *borrower) callChecks() {
	for _, seconds := range []int{60, -1} {
		made, err := b.limiter.Check(core.Rule{
			Name: b.lent.lend(fmt.Sprint("inside", seconds)), Seconds: seconds, Message: b.lent.lend("No."), Also: []core.Limit{core.PerCalendarDay(9, b.lent.lend("Asia/Kabul"))},
			Plan: planOf("pro"), Plans: map[string]core.Limit{b.lent.lend("pro"): core.PerCalendarDay(8, b.lent.lend("Asia/Kabul"))},
		})
		if err == nil {
			made.Allow(lentView(b.lent), b.lent.lend("account:carol"))
		}
		b.check("Check")
	}
}

// callHandles makes direct calls, each in a time zone of its own.
func (b *borrower) callHandles() {
	zones := []string{"Asia/Dubai", "Asia/Dhaka", "Asia/Seoul", "Asia/Karachi", "Asia/Almaty"}
	limit := func() core.Limit {
		l := core.PerCalendarDay(1, b.lent.lend(zones[0]))
		zones = zones[1:]
		return l
	}
	name, subject := func() string { return b.lent.lend("direct") }, func() string { return b.lent.lend("user:alice") }
	_, _ = peek(b.limiter, background, name(), subject(), limit())
	b.check("Peek")
	_, _ = b.limiter.MustCounter(name(), limit()).AllowN(background, subject(), 1)
	b.check("AllowN")
	for range 2 {
		_, _ = b.limiter.MustCounter(name(), core.PerCalendarDay(1, b.lent.lend("Asia/Kuwait"))).Allow(background, subject())
		b.check("Allow")
	}
	_, _ = b.limiter.MustCounter(b.lent.lend("none"), core.Unlimited).Allow(background, subject())
	b.check("Allow of Unlimited")
	_, _ = resetOf(b.limiter, background, name(), subject(), limit())
	b.check("Reset")
}

func (b *borrower) operate() {
	subject := func() string { return b.lent.lend("user:alice") }
	for _, rule := range []string{"rule", "elsewhere"} {
		_, _ = operate.New(b.limiter).Ban(operate.WithActor(background, b.lent.lend("bob"), b.lent.lend("scraper")), b.lent.lend(rule), subject(), time.Hour)
		b.check("Ban")
	}
	_, _, _ = operate.New(b.limiter).Bans(background, b.lent.lend("rule"), b.lent.lend("user:"), 10)
	b.check("Bans")
	_, _ = operate.New(b.limiter).Unban(background, b.lent.lend("rule"), subject())
	b.check("Unban")
	newGuard(b, b.limiter, core.Rule{Name: b.lent.lend("overridden"), Seconds: 60, Overrides: true})
	overrides, err := operate.New(b.limiter).Overrides(b.lent.lend("overridden"))
	if err != nil {
		b.Fatal(err)
	}
	b.check("Overrides")
	actor := operate.WithActor(background, b.lent.lend("bob"), b.lent.lend("ticket 7"))
	_ = overrides.Set(actor, subject(), operate.Override{Max: 5, Note: b.lent.lend("contract 17")})
	b.check("Set")
	_, _, _ = overrides.Get(background, subject())
	_, _, _ = overrides.List(background, b.lent.lend("user:"), 10)
	b.check("Get and List")
	_, _ = overrides.Remove(actor, subject())
	b.check("Remove")
}

func (b *borrower) callOtherHandles() {
	subject := func() string { return b.lent.lend("user:alice") }
	noted := core.Limit{Max: 3, Window: time.Hour, Algorithm: core.SlidingLog}
	d, err := b.limiter.MustLog(b.lent.lend("noted"), noted).AllowN(background, subject(), 2, b.lent.lend("phone"))
	if err != nil {
		b.Fatal(err)
	}
	_ = b.limiter.Refund(background, d, 1)
	b.check("AllowNoted and Refund")
	_, _ = b.limiter.MustLog(b.lent.lend("noted"), noted).Records(background, subject())
	b.check("Records")
	release, _, _ := b.limiter.MustSlots(b.lent.lend("held"), 1).Hold(background, subject())
	b.check("Hold")
	release()
	b.check("release")
	bucket := core.PerHour(3).Bucket(2)
	_, _ = b.limiter.MustPacer(b.lent.lend("turn"), bucket).Reserve(background, subject(), 3)
	b.check("Reserve")
	ctx, leave := context.WithTimeout(background, time.Millisecond)
	defer leave()
	_, _ = b.limiter.MustPacer(b.lent.lend("turn"), bucket).Acquire(ctx, subject(), 1)
	b.check("Acquire")
	for i := range tally.MaxHandles + 1 { // names beyond those that Stats lists separately
		_, _ = peek(b.limiter, background, fmt.Sprint("name", i), "s", core.PerHour(1))
	}
	_, _ = b.limiter.MustCounter(b.lent.lend("beyond"), core.PerCalendarDay(1, b.lent.lend("Asia/Baku"))).Allow(background, subject())
	b.check("Allow of many names")
}

// If a caller leaves Acquire, its reservation is given back in the background, when its strings are
// lent to somebody else.
func TestLeavingAcquireGivesBackUnderItsOwnName(t *testing.T) {
	onBothEngines(t, func(t *testing.T, options core.Options, _ core.Source) {
		ctx, leave := context.WithCancel(background)
		options.OnDecision = func(_ context.Context, e core.Event) {
			d := e.Decision

			if d.Wait > 0 {
				leave()
			}
		}
		limiter, lent, limit := newLimiter(t, options), newLender(), core.PerHour(60).Bucket(1)
		for _, want := range []error{nil, context.Canceled} {
			if _, err := limiter.MustPacer(lent.lend("turn"), limit).Acquire(ctx, lent.lend("user:alice"), 1); !errors.Is(err, want) {
				t.Fatalf("%v, want %v", err, want)
			}
			lent.takeBack()
		}
		eventually(t, "the turn is given back", func() bool {
			d, err := peek(limiter, background, "turn", "user:alice", limit)
			return err == nil && d.RetryAfter <= time.Minute
		})
	})
}
