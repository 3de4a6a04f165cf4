package usage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// TooLate are diffs that were accepted when retention had taken their months. They are dead letters, and no bill
// has them. A letter does not say of which space its diffs are.
type TooLate struct {
	Topic string `json:"-"`
	Diffs uint64 `json:"diffs"`
	// Months are theirs, the oldest first.
	Months []string `json:"months"`
	// More: there are more dead letters than were looked at.
	More bool `json:"more,omitempty"`
}

// maxLetters bounds the dead letters that are looked at.
const maxLetters = 10_000

// String says how many there are, and what can be done.
func (l *TooLate) String() string {
	least := ""
	if l.More {
		least = "at least "
	}
	return fmt.Sprintf("%sdiffs that came when retention had taken their months (%s), and are in no bill: %d; `almanac dead ls %s` lists them", least, strings.Join(l.Months, ", "), l.Diffs, l.Topic)
}

// TooLate looks for diffs of a topic that came too late, of months that begin before an instant. It is nil when
// there are none.
func (r *Reader) TooLate(ctx context.Context, topic string, before time.Time) (*TooLate, error) {
	t, err := r.topic(ctx, topic)
	if err != nil {
		return nil, err
	}
	late, looked := TooLate{Topic: topic}, 0
	err = r.events.EachDead(ctx, topic, func(d *query.DeadLetter) bool {
		late.add(t, d, before)
		looked++
		late.More = looked == maxLetters
		return !late.More
	})
	if err != nil || late.Diffs == 0 {
		return nil, err
	}
	slices.Sort(late.Months)
	return &late, nil
}

// add takes a letter, if it is of diffs that came too late.
func (l *TooLate) add(t *schemas.Topic, d *query.DeadLetter, before time.Time) {
	if d.Reason != schemas.Reason(schemas.ErrPastRetention) {
		return
	}
	m, _, err := schemas.ParseEventsSubject(d.Subject, t)
	if err != nil || m.Start() >= before.UnixNano() {
		return
	}
	l.Diffs += uint64(d.Events)
	if name := m.String(); !slices.Contains(l.Months, name) {
		l.Months = append(l.Months, name)
	}
}
