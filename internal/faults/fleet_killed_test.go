package faults_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/accesslimit/accesslimit/core"
	"github.com/accesslimit/accesslimit/core/operate"
	"github.com/accesslimit/accesslimit/internal/redistest"
)

const memberFault = "of three processes, one is killed (-9) and one stopped (SIGSTOP) while they send refusals for Top, thresholds and bans"

// If processes of a fleet are killed or stopped while they report, each threshold is reported at
// most once, the refusals of the others are counted, and bans of subjects that still call are
// listed.
func TestFleetLosesMembers(t *testing.T) {
	rounds, reported, possible, worst := shortOr(1, 15), 0, 0, 0.0
	for n := range rounds {
		server := redistest.Start(t)
		f := newFleet(t, server.Addr(), patience)
		judge := limited(t, server, core.Options{Timeout: patience}).limiter
		worst = max(worst, f.loseMembers(judge, n%2 == 0))
		server.Kill()
		f.mutex.Lock()
		for threshold, times := range f.reports {
			if times > 1 {
				t.Errorf("%s was reported %d times", threshold, times)
			}
		}
		reported, possible = reported+len(f.reports), possible+2*fleetSubjects
		f.mutex.Unlock()
	}
	if reported == 0 {
		t.Error("no threshold was reported")
	}
	report(t, memberFault, "%d times: %d of %d thresholds reported, none twice; the refusals of the others at most %.1f %% off; all bans listed",
		rounds, reported, possible, 100*worst)
}

// fleetSubjects is how many subjects reach thresholds, and how many are banned.
const fleetSubjects = 40

// loseMembers makes the first process ban subjects, kills it, either at once or while it ends in
// order, and stops the second one meanwhile. It returns by how much the refusals that Top has of the
// others are off.
func (f *fleet) loseMembers(judge *core.Limiter, atOnce bool) (off float64) {
	f.t.Helper()
	first, second, third := f.processes[0], f.processes[1], f.processes[2]
	strict := round{Rules: []string{"strict"}, Subjects: numbered("banned"), Callers: 1, Times: 2}
	first.begin(strict)
	first.result()
	counted := make([]*tally, 3)
	for i, p := range f.processes {
		p.begin(round{Rules: []string{"counted"}, Subjects: []string{fmt.Sprint("process", i)}, Callers: 1, Times: 200})
		counted[i] = p.result()
		p.begin(round{Rules: []string{"warned"}, Subjects: numbered("warned"), Callers: 4, Times: fleetMost / 4})
	}
	second.signal("STOP")
	if !atOnce {
		first.leave()
	}
	time.Sleep(rand.N(20 * time.Millisecond))
	first.kill()
	time.Sleep(2 * timeout)
	second.signal("CONT")
	for _, p := range f.processes[1:] {
		p.result()
		p.begin(strict)
		p.result()
	}
	soon(f.t, "all bans are listed", func() bool {
		page, _, err := operate.New(judge).Bans(context.Background(), "strict", "", 1000)
		return err == nil && len(page) == fleetSubjects
	})
	f.processes = []*process{second, third}
	f.end()
	top, err := operate.New(judge).Top(context.Background(), "counted", time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}
	listed := make(map[string]float64)
	for _, e := range top.Refused {
		listed[e.Subject] = float64(e.Refused)
	}
	for i := range counted {
		subject := fmt.Sprint("process", i)
		refused := float64(counted[i].Places["counted "+subject].Refused)
		switch by := math.Abs(listed[subject]/refused - 1); {
		case listed[subject] > refused:
			f.t.Errorf("%v refusals of %s are listed, of %v", listed[subject], subject, refused)
		case i > 0 && by > 0.1:
			f.t.Errorf("%v refusals of %s are listed, of %v", listed[subject], subject, refused)
		case i > 0:
			off = max(off, by)
		}
	}
	return off
}

// numbered returns some subjects.
func numbered(name string) (subjects []string) {
	for i := range fleetSubjects {
		subjects = append(subjects, fmt.Sprint(name, i))
	}
	return subjects
}
