package verify

import (
	"fmt"
	"time"
)

// Totals are what was accepted against what became of it, in events.
type Totals struct {
	Accepted uint64 `json:"accepted"`
	Stored   uint64 `json:"stored"`
	Dead     uint64 `json:"dead"`
	Pending  uint64 `json:"pending"`
	Missing  uint64 `json:"missing"`
	Doubled  uint64 `json:"doubled"`
	// Dropped events went with their shard, past their topic's retention.
	Dropped uint64 `json:"dropped"`
	// Erased events were stored, and are gone because an erasure covers them; see the
	// ledger.
	Erased uint64 `json:"erased"`
	// Discarded events were dead letters that were dropped by hand.
	Discarded uint64 `json:"discarded"`
	// Repeated events came again from a producer that had no answer, and were
	// refused: they are in none of the other numbers.
	Repeated uint64 `json:"repeated"`
}

func (t *Totals) add(u Totals) {
	t.Accepted += u.Accepted
	t.Stored += u.Stored
	t.Dead += u.Dead
	t.Pending += u.Pending
	t.Missing += u.Missing
	t.Doubled += u.Doubled
	t.Dropped += u.Dropped
	t.Erased += u.Erased
	t.Discarded += u.Discarded
	t.Repeated += u.Repeated
}

// Report is the proof.
type Report struct {
	Totals
	Topics []TopicReport `json:"topics"`
	// LostMessages were accepted and lost with the end of EVENTS before they were routed,
	// of any topic. How many events were in them is not known.
	LostMessages uint64 `json:"lost_messages,omitempty"`
	// Foreign is how many messages on Almanac's subjects were none of its own and are kept as dead
	// letters of schemas.NoTopic, where all topics are verified.
	Foreign uint64 `json:"foreign,omitempty"`
	// Taken is what was proven before and did not change since.
	Taken Taken `json:"taken,omitzero"`
	// Problems name each fault with its exact range.
	Problems []string `json:"problems,omitempty"`
}

// OK says whether nothing is missing, doubled or unexplained.
func (r *Report) OK() bool { return r.Missing == 0 && r.Doubled == 0 && len(r.Problems) == 0 }

// TopicReport is the proof for one topic.
type TopicReport struct {
	Topic string `json:"topic"`
	Totals
	Taken Taken `json:"taken,omitzero"`
	// Repeats are stored events that came before and do not count, of a topic whose events
	// count once; <topic>_once leaves them out.
	Repeats uint64 `json:"repeats,omitempty"`
	// Derived names shards whose repeats or sums are behind their rows, or do not fit them.
	// No answer goes by such sums.
	Derived []string `json:"derived,omitempty"`
	// Front compares the documents of the front with the table, where that was asked for.
	Front  *FrontReport  `json:"front,omitempty"`
	Shards []ShardReport `json:"shards"`
}

// ShardReport compares one shard with its frames.
type ShardReport struct {
	Name string `json:"name"`
	// Routed is the rows of all its frames; Expected those of the frames up to
	// the head; Stored the rows that ClickHouse holds, Distinct how many ids these have.
	Routed uint64 `json:"routed"`
	// Expected leaves out what was Erased of them.
	Expected uint64 `json:"expected"`
	Erased   uint64 `json:"erased"`
	Stored   uint64 `json:"stored"`
	Distinct uint64 `json:"distinct"`
	Head     uint64 `json:"head"`
	Tail     uint64 `json:"tail"`
	// Dropped is the rows retention dropped, Note when and why.
	Dropped uint64 `json:"dropped,omitempty"`
	Note    string `json:"note,omitempty"`
	// ByCount: rows were counted, and nothing told which events they must be: the frame at the
	// head, which carries the sum of their ids, is gone.
	ByCount  bool     `json:"by_count,omitempty"`
	Problems []string `json:"problems,omitempty"`

	standIn uint64 // rows that are there twice in place of others
	proven  uint64 // position up to which all was stored once, when above the head
	ids     uint64 // sum of the ids of the frames up to the head
	summed  bool   // it is known
	changed bool   // ClickHouse has other events than those

	provenAt time.Time // by an earlier run; zero: by this one
}

func (s *ShardReport) problem(format string, a ...any) {
	s.Problems = append(s.Problems, s.Name+": "+fmt.Sprintf(format, a...))
}

func (r *Report) add(t *TopicReport) {
	r.Topics = append(r.Topics, *t)
	r.Totals.add(t.Totals)
	r.Taken.add(t.Taken)
	for _, s := range t.Shards {
		r.Problems = append(r.Problems, s.Problems...)
	}
}

// ByCount is how many shards were compared by count alone.
func (r *Report) ByCount() (n int) {
	for i := range r.Topics {
		for j := range r.Topics[i].Shards {
			if r.Topics[i].Shards[j].ByCount {
				n++
			}
		}
	}
	return n
}

// Shards are the shards of a topic.
func (r *Report) Shards(topic string) []ShardReport {
	for i := range r.Topics {
		if r.Topics[i].Topic == topic {
			return r.Topics[i].Shards
		}
	}
	return nil
}
