package cleaner

import (
	"fmt"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
)

// timerKind: a timer leaves whole once it is over, because its records name its spec by sequence. What follows
// a record that ended a timer holds its own spec (timer.Create, timer.Again), so that nothing names
// a record at or below the last one that is purged.
var timerKind = Kind{
	Parse: parseTimer,
	Says: fmt.Sprintf("concat(`%s`, ' ', %s, ' ', toString(%s), ' ', toString(%s), ' ', toString(%s), ' ', %s, ' ', toString(length(%s)))",
		kinds.ColGroup, kinds.ColTimerID, kinds.ColLife, kinds.ColRevision, kinds.ColAttempt, kinds.ColState, kinds.ColSpec),
	HotFor: func(*schemas.Topic) time.Duration { return 0 },
}

func parseTimer(m *streams.Message) (Record, error) {
	r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil)
	if err != nil {
		return Record{}, err
	}
	size := m.Size
	if r.SpecSeq != 0 {
		size = 0
	}
	return Record{Over: r.State().Over(), Row: &Row{
		Seq: r.Seq, Ts: r.Changed,
		Says: r.Key.Group + " " + r.Key.ID + " " + r.Life.String() + " " + strconv.FormatInt(r.Revision, 10) + " " +
			strconv.FormatInt(r.Attempt, 10) + " " + string(r.Op) + " " + strconv.Itoa(size),
	}}, nil
}
