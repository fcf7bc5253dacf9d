package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/accesslimit/accesslimit/core/replay/internal/accesslog"
)

// Log is an access log.
type Log struct {
	// Name names the log in messages.
	Name string
	// Reader returns its lines. They may be compressed with gzip.
	Reader io.Reader
}

// The errors of Run, beside those of readers, rules and formats.
var (
	// ErrNoCalls means that no line of any log is about a call.
	ErrNoCalls = errors.New("replay: there are no calls in the logs")
	// ErrBadLines means that more than one line in a hundred could not be read, or that a compressed log
	// is cut off. The Report is complete, and counts the other lines.
	ErrBadLines = errors.New("replay: too much could not be read")
	// ErrOrder means that a log is not in order of time. It may begin with its newest line, or say
	// when calls began but not how long they took. Its clock may go back for good up to three times,
	// and one call in a hundred may be written over a minute behind others.
	ErrOrder = accesslog.ErrOrder
	// ErrFormat means that Options.Format is not set, and the lines of a log have none of the known forms.
	ErrFormat = accesslog.ErrFormat
)

// Run decides the calls in logs by the rules of the options, and reports what became of them. The logs
// are merged by time, and may be out of order by up to a minute. Run returns when all logs have ended,
// or with the context's error. An error that matches [ErrBadLines] comes with the Report.
func Run(ctx context.Context, options Options, logs ...Log) (*Report, error) {
	r, err := newRun(options)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	defer r.close()
	merged, err := r.open(ctx, logs)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	for call := merged.Next(); call != nil; call = merged.Next() {
		if err := r.decide(ctx, call); err != nil {
			return nil, err
		}
	}
	return r.finish(merged)
}

// run is the state of one Run.
type run struct {
	options Options
	counts  accesslog.Counts
	formats []string
	names   []string

	limits  *limits
	peaks   *peaks // nil unless a limit is to be suggested
	tally   *tally
	times   timeline
	late    int
	sameAs  int // calls that began at the same time as the one before
	began   int64
	decided int
}

func newRun(options Options) (*run, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	r := &run{options: options}
	r.options.Guards = slices.Clone(options.Guards)
	for i := range r.options.Guards {
		r.options.Guards[i].Rules = slices.Clone(options.Guards[i].Rules)
	}
	r.tally = newTally(r.options.Guards, options.OnDecision)
	var err error
	if r.limits, err = newLimits(&r.options, r.tally); err != nil {
		return nil, err
	}
	r.limits.fillIn(r.options.Guards)
	if options.Suggest > 0 {
		r.peaks, err = newPeaks(&r.options)
	}
	if err != nil {
		r.limits.close()
		return nil, err
	}
	return r, nil
}

// open opens the logs.
func (r *run) open(ctx context.Context, logs []Log) (*accesslog.Merged, error) {
	format, err := accesslog.ParseFormat(r.options.Format, r.options.Fields)
	if err != nil {
		return nil, err
	}
	var opened []*accesslog.Log
	for _, from := range logs {
		l, err := accesslog.Open(from.Name, &reader{ctx, from.Reader}, format, r.options.Zone, &r.counts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from.Name, err)
		}
		opened = append(opened, l)
		r.names, r.formats = append(r.names, from.Name), append(r.formats, l.Format())
	}
	return accesslog.Merge(opened, r.options.AllowBadLines), nil
}

// reader reads until a context has ended.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r *reader) Read(p []byte) (n int, err error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// progressEvery is how many calls lie between two looks at the context and reports of progress.
const progressEvery = 1 << 12

// decide decides the next call.
func (r *run) decide(ctx context.Context, call *accesslog.Call) error {
	if r.decided%progressEvery == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.options.OnProgress != nil {
			r.options.OnProgress(r.counts.Lines)
		}
	}
	r.note(call)
	refused := r.limits.decide(call)
	r.times.add(call.Began, refused)
	if r.peaks != nil {
		r.peaks.limits.decide(call)
	}
	return nil
}

// note counts what the report says of the log itself.
func (r *run) note(call *accesslog.Call) {
	if call.Late {
		r.late++
	}
	if r.decided > 0 && call.Began == r.began {
		r.sameAs++
	}
	r.began = call.Began
	r.decided++
}

// finish makes the report.
func (r *run) finish(merged *accesslog.Merged) (*Report, error) {
	var failed error
	for i, err := range merged.Errs() {
		switch {
		case err == nil, r.options.AllowBadLines && errors.Is(err, accesslog.ErrOrder):
		case !errors.Is(err, accesslog.ErrCutOff):
			return nil, fmt.Errorf("replay: %s: %w", r.names[i], err)
		case !r.options.AllowBadLines:
			failed = fmt.Errorf("%w: %s %w", ErrBadLines, r.names[i], err)
		}
	}
	if c := &r.counts; c.Bad*100 > c.Lines && !r.options.AllowBadLines {
		failed = fmt.Errorf("%w: %d of %d lines", ErrBadLines, c.Bad, c.Lines)
	}
	if r.decided == 0 && failed == nil {
		return nil, ErrNoCalls
	}
	return r.report(merged), failed
}

// close ends the limiters.
func (r *run) close() {
	r.limits.close()
	if r.peaks != nil {
		r.peaks.limits.close()
	}
}
