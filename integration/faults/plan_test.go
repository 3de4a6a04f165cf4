package faults

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// One seed is one plan, whatever the faults draw and however long they take.
func TestPlanRepeats(t *testing.T) {
	t.Parallel()
	run := func(seed uint64, draws int) (plan []string) {
		s := NewSchedule(seed, Mix())
		for range 2 * len(Mix()) {
			step := s.Next()
			plan = append(plan, step.Fault.Name+step.Pause.String())
			for range draws {
				step.Rand.Uint64()
			}
		}
		return plan
	}
	one := run(7, 0)
	if !slices.Equal(one, run(7, 5)) {
		t.Error("the plan of one seed differs when its faults draw more")
	}
	if slices.Equal(one, run(8, 0)) {
		t.Error("two seeds have one plan")
	}
	first := map[string]bool{}
	s := NewSchedule(7, Mix())
	for range Mix() {
		first[s.Next().Fault.Name] = true
	}
	if len(first) != len(Mix()) {
		t.Errorf("the first round has %d of %d faults", len(first), len(Mix()))
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	var times Times
	for i := range 100 {
		times.Add("b", time.Duration(100-i)*time.Second)
	}
	times.Add("a", time.Second)
	if got := quantile(times.Of("b"), 0.5); got != 51*time.Second {
		t.Errorf("median %s", got)
	}
	if got := quantile(times.Of("b"), 0.99); got != 100*time.Second {
		t.Errorf("p99 %s: it must cover 99 of 100", got)
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("median of nothing: %s", got)
	}
	if got := times.Kinds(); !slices.Equal(got, []string{"a", "b"}) || times.Count("b") != 100 || len(times.All()) != 101 {
		t.Errorf("kinds %v, b %d, all %d", got, times.Count("b"), len(times.All()))
	}
}

// A report names everything, also when the promise is broken.
func TestReport(t *testing.T) {
	t.Parallel()
	var times Times
	times.Add("kill -9 nats", 2*time.Second)
	var b strings.Builder
	r := Report{Seed: 5, Lasted: time.Minute, Times: &times, Outage: 3 * time.Second, Peaks: map[Role]uint64{RoleSink: 40 << 20},
		Finding: &Finding{Told: 10, Lost: []uint64{1}, Twice: []uint64{2, 3}}}
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"seed 5", "| events accepted | 10 |", "| events lost | 1 |", "| events twice | 2 |", "| longest outage of a lane | 3.0 s |",
		"| kill -9 nats | 1 | 2.0 s | 2.0 s | 2.0 s |", "| sink | 40 MiB |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	var a, b Set
	for _, n := range []uint64{0, 63, 64, 1000} {
		if !a.Add(n) || a.Add(n) || !a.Has(n) {
			t.Errorf("%d is not in once", n)
		}
	}
	b.Add(63)
	if got := a.Without(&b); !slices.Equal(got, []uint64{0, 64, 1000}) || a.Len() != 4 || a.Has(1<<40) {
		t.Errorf("without 63: %v", got)
	}
}

// What a journal says is what the producer was told, also when it ends in half a line.
func TestJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := OpenJournal(filepath.Join(dir, "3.journal"))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Reserve(2); err != nil {
		t.Fatal(err)
	}
	j.Ack(1, nil)
	j.Ack(2, errors.New("given up"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "4.journal")
	if err := writeText(cut, "r 9\ns 1\ns 2"); err != nil {
		t.Fatal(err)
	}
	all, err := ReadJournals(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := all[3]; got.Reserved != 2+reserveStep-1 || !got.Stored.Has(1) || got.Stored.Len() != 1 || !got.GivenUp.Has(2) {
		t.Errorf("the journal says %+v", got)
	}
	if got := all[4]; got.Reserved != 9 || got.Stored.Len() != 1 {
		t.Errorf("half a line counts: %+v", got)
	}
	if err := writeText(filepath.Join(dir, "5.journal"), "x 1\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadJournals(dir); err == nil {
		t.Error("a line that is none is believed")
	}
}

func writeText(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
