package send

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/producer"
)

// Each answer puts a record into one state, and every record that was read is in exactly one.
func TestStatsCountsEachRecordOnce(t *testing.T) {
	t.Parallel()
	report := filepath.Join(t.TempDir(), "accepted")
	s, err := NewStats(report, error.Error)
	if err != nil {
		t.Fatal(err)
	}
	for line, answer := range []error{nil, fmt.Errorf("x: %w", producer.ErrSpooled), producer.ErrOutcomeUnknown, producer.ErrClosed, intake.ErrTooLong, errors.New("else"), nil} {
		s.took()
		s.answered(line+1, answer)
	}
	s.took()
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	sum := s.Summary()
	if sum.Read != 8 || sum.Accepted != 2 || sum.Spooled != 1 || sum.Unknown != 1 || sum.NotSent != 2 || sum.Refused != 2 ||
		sum.ByReason["record-too-long"] != 1 || sum.ByReason["other"] != 1 || sum.Refusals[0].Line != 5 || sum.Refusals[1].Line != 6 {
		t.Errorf("%+v", sum)
	}
	if all := sum.Accepted + sum.Spooled + sum.Unknown + sum.NotSent + sum.Refused; all != sum.Read {
		t.Errorf("%d of %d records are counted", all, sum.Read)
	}
	if got, err := os.ReadFile(report); err != nil || string(got) != "1\n7\n" {
		t.Errorf("the report is %q: %v", got, err)
	}
	s.spoolEnded(producer.Stats{}) // what was in the spool has been stored
	if sum := s.Summary(); sum.Accepted != 3 || sum.Spooled != 0 {
		t.Errorf("%+v", sum)
	}
}

// A send that waits says so after two seconds and then each minute, and again once something was accepted.
func TestNoticesOfASendThatWaits(t *testing.T) {
	t.Parallel()
	var n notices
	for i, step := range []struct {
		idle time.Duration
		want bool
	}{
		{0, false}, {waitingAfter - 1, false}, {waitingAfter, true}, {waitingAfter + waitingEvery - 1, false}, {waitingAfter + waitingEvery, true},
		{3 * waitingEvery, true}, {3*waitingEvery + 1, false}, {0, false}, {waitingAfter, true},
	} {
		if got := n.due(step.idle); got != step.want {
			t.Errorf("step %d, idle for %s: %v", i, step.idle, got)
		}
	}
}

// A record of several events is answered once, by the first error among them.
func TestTogetherAnswersOnce(t *testing.T) {
	t.Parallel()
	first, calls := errors.New("first"), 0
	var got error
	answer := together(3, func(err error) { got, calls = err, calls+1 })
	for _, err := range []error{nil, first, errors.New("second")} {
		answer(err)
	}
	if calls != 1 || !errors.Is(got, first) {
		t.Errorf("answered %d times: %v", calls, got)
	}
}
