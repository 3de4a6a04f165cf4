package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// A front and its table are read one after the other, while writers, sinks, cleaners and
// erasures are at work. What differed is looked at again, and only what still does is a
// problem. An erasure takes records out of the front before it takes their rows: what it
// means is said to be erased, and is not a problem before the erasure has ended.

const (
	// maxDiffer bounds the keys that are looked at again at once, and those that are named.
	maxDiffer = 1000
	// frontTries is how often a key is looked at again while erasures begin and end.
	frontTries = 3
)

// lookAgain looks once more at keys that differed, and adds to the report what is wrong.
func (v *Verifier) lookAgain(ctx context.Context, t *schemas.Topic, rep *TopicReport, keys []string) error {
	k, s := records.Of(t), ShardReport{Name: t.Name}
	slices.Sort(keys)
	for some := range slices.Chunk(keys, maxDiffer) {
		wrong, err := v.stillWrong(ctx, t, rep, some)
		if err != nil {
			return err
		}
		for _, key := range some {
			if why := wrong[key]; why != "" {
				if rep.Front.Differ++; rep.Front.Differ <= maxDiffer {
					s.Problems = append(s.Problems, fmt.Sprintf("topic %s: %s: %s", t.Name, k.Name(key), why))
				}
			}
		}
	}
	if more := rep.Front.Differ - maxDiffer; more > 0 {
		s.Problems = append(s.Problems, fmt.Sprintf("topic %s: %d more %ss differ between %s and ClickHouse", t.Name, more, k.Noun, t.Front()))
	}
	if len(s.Problems) > 0 {
		rep.Shards = append(rep.Shards, s)
	}
	return nil
}

// stillWrong says what is wrong with keys, but for those that an erasure under way means,
// which it counts. A key that differed while an erasure began or ended is looked at once more.
func (v *Verifier) stillWrong(ctx context.Context, t *schemas.Topic, rep *TopicReport, keys []string) (map[string]string, error) {
	for try := 1; ; try++ {
		before, err := v.clearing(ctx, t)
		if err != nil {
			return nil, err
		}
		wrong, err := v.compare(ctx, t, rep, keys)
		if err != nil || len(wrong) == 0 {
			return nil, err
		}
		after, err := v.clearing(ctx, t)
		if err != nil {
			return nil, err
		}
		keys = keys[:0:0]
		for key := range wrong {
			keys = append(keys, key)
		}
		for i := range after {
			meant, err := v.meant(ctx, t, &after[i], keys)
			if err != nil {
				return nil, err
			}
			for _, key := range meant {
				if _, there := wrong[key]; there {
					delete(wrong, key)
					rep.Front.Erasing++
					rep.Front.Erasure = after[i].ID
				}
			}
		}
		if len(wrong) == 0 || len(before)+len(after) == 0 || try == frontTries {
			return wrong, nil
		}
		keys = keys[:0]
		for key := range wrong {
			keys = append(keys, key)
		}
	}
}

// clearing lists the erasures that may be taking records out of a topic's front.
func (v *Verifier) clearing(ctx context.Context, t *schemas.Topic) (out []ledger.Erasure, err error) {
	erasures, err := v.reg.Ledger(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	for _, e := range erasures.Only(ledger.Waiting, ledger.Erasing) {
		if e.Front != "" {
			out = append(out, e)
		}
	}
	return out, nil
}

// ended lists the erasures that took records out of a topic's front.
func (v *Verifier) ended(ctx context.Context, t *schemas.Topic) (out ledger.Erasures, err error) {
	erasures, err := v.reg.Ledger(ctx, t.Name)
	for i := range erasures {
		if e := &erasures[i]; e.Front != "" && e.State == ledger.Erased {
			out = append(out, *e)
		}
	}
	return out, err
}

// maxBy bounds the erasures that are named for one record.
const maxBy = 3

// mayBeOf says which erasures may have taken a record's row, so that its front is a copy from before them; empty: none.
// A stub does not say whose the document was. Those come first that nothing carries out again by itself.
func mayBeOf(ended ledger.Erasures, seq uint64, changed int64, user string, stub bool) string {
	var ids []string
	front := ""
	for _, e := range ended {
		if stub {
			e.Users = nil
		}
		if !e.MayMean(seq, changed, user) {
			continue
		}
		front = e.Front
		if at := len(ids); e.Redacted && e.Where != "" {
			ids = slices.Insert(ids, 0, e.ID)
		} else {
			ids = slices.Insert(ids, at, e.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	some := ids[:min(len(ids), maxBy)]
	return fmt.Sprintf("; or it is of erasure %s, and %s is a copy from before that: `almanac erase resume %s` takes it out if so", strings.Join(some, " or "), front, some[0])
}
