package schemas

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestTimerSlotVectors(t *testing.T) {
	for slots, want := range map[int]int{16: 6, 256: 150, 1024: 150, 4096: 1174} {
		if got := TimerSlot("user-reminder-123", slots); got != want {
			t.Errorf("slot of %d: %d, want %d", slots, got, want)
		}
	}
}

func TestTimerSlotsAreEven(t *testing.T) {
	const ids, slots = 100_000, 256
	r := rand.New(rand.NewPCG(1, 2))
	count := make([]int, slots)
	for range ids {
		count[TimerSlot("timer-"+strconv.FormatUint(r.Uint64(), 36), slots)]++
	}
	largest := 0
	for _, n := range count {
		largest = max(largest, n)
	}
	if mean := float64(ids) / slots; float64(largest) >= 1.3*mean {
		t.Errorf("the largest slot has %d timers, the mean is %.0f", largest, mean)
	}
}

func TestTimerKeyRoundTrip(t *testing.T) {
	k := NewTimerKey("timers", "mails", "a/b=c:d@e+f~g-h_i", 1024, 4)
	got, err := ParseTimerSubject(k.Subject())
	if err != nil || got != k {
		t.Errorf("%s: %+v, %v; want %+v", k.Subject(), got, err, k)
	}
	for _, s := range []string{"", "timers.t.0.g.1", "timers.t.01.g.1.id", "timers.t.0.g.4096.id", "timers.t.0.g.01.id", "timers.t.0.G.1.id", "docs.t.0.g.1.id"} {
		if _, err := ParseTimerSubject(s); !errors.Is(err, ErrSubject) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestTimerNames(t *testing.T) {
	for _, id := range []string{"", strings.Repeat("x", 256), "a.b", "a*", "a>", "a b", "ä", "a\n"} {
		if err := ValidateTimerID(id); !errors.Is(err, ErrTimerID) {
			t.Errorf("id %q: %v", id, err)
		}
	}
	if err := ValidateTimerID(strings.Repeat("x", 255)); err != nil {
		t.Error(err)
	}
	for _, g := range []string{"", "A", "a.b", strings.Repeat("g", 64)} {
		if err := ValidateTimerGroup(g); !errors.Is(err, ErrTimerGroup) {
			t.Errorf("group %q: %v", g, err)
		}
	}
}
