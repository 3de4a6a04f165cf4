package billing

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
)

// ledger is what was published for a month.
type ledger struct {
	topic  string
	rounds map[int]*round
	bills  map[Key]published
	runs   map[string]*stand
}

// round is one publication: which of its buckets are there.
type round struct {
	buckets int
	groupBy usage.GroupBy
	measure usage.Measure
	found   map[int]bool
}

func (r *round) complete() bool { return r != nil && len(r.found) == r.buckets }

// published is the last revision of a key's bill.
type published struct {
	revision int
	round    int
	run      string
	bill     usage.Bill
}

// stand is the positions that bills stand on.
type stand struct {
	parts map[int]bool
	of    int
	at    usage.Positions
}

// positions are those of a run, nil when they are not all there.
func (l *ledger) positions(run string) usage.Positions {
	if s := l.runs[run]; s != nil && len(s.parts) == s.of {
		return s.at
	}
	return nil
}

func newLedger(topic string) *ledger {
	return &ledger{topic: topic, rounds: map[int]*round{}, bills: map[Key]published{}, runs: map[string]*stand{}}
}

// last is the number of the highest round, -1 when there is none.
func (l *ledger) last() int {
	n := -1
	for i := range l.rounds {
		n = max(n, i)
	}
	return n
}

// entry is an event of the log topic, by the names of its columns and attributes.
type entry map[string]string

// readEntry reads an event as query has it: columns by name, and the others under attributes.
// A topic may promote attributes to columns.
func readEntry(text []byte) (entry, error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(text, &columns); err != nil {
		return nil, err
	}
	e := entry{}
	if err := json.Unmarshal(columns[schemas.ColAttributes], (*map[string]string)(&e)); err != nil {
		return nil, err
	}
	for name, value := range columns {
		if name == schemas.ColAttributes {
			continue
		}
		var s string
		if json.Unmarshal(value, &s) != nil {
			s = string(value)
		}
		if s != "" || e[name] == "" {
			e[name] = s
		}
	}
	return e, nil
}

// number reads a count.
func (e entry) number(name string) (int, error) {
	n, err := strconv.Atoi(e[name])
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is %q, expected a count", name, e[name])
	}
	return n, nil
}

// numbers reads counts.
func (e entry) numbers(names ...string) (out []int, err error) {
	for _, name := range names {
		n, err := e.number(name)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// take enters an event. It does not matter in which order events come, or how often.
func (l *ledger) take(e entry) error {
	switch e[schemas.ColType] {
	case schemas.TypeBucket:
		n, err := e.numbers(schemas.AttrBillRound, schemas.AttrBillBucket, schemas.AttrBillBuckets)
		if err != nil {
			return err
		}
		r := l.rounds[n[0]]
		if r == nil {
			r = &round{buckets: n[2], groupBy: usage.GroupBy(e[schemas.AttrBillGroup]), measure: usage.Measure(e[schemas.AttrBillMeasure]), found: map[int]bool{}}
			l.rounds[n[0]] = r
		}
		r.found[n[1]] = true
	case schemas.TypePositions:
		n, err := e.numbers(schemas.AttrBillPart, schemas.AttrBillParts)
		if err != nil {
			return err
		}
		s := l.runs[e[schemas.AttrBillRun]]
		if s == nil {
			s = &stand{parts: map[int]bool{}, of: n[1], at: usage.Positions{}}
			l.runs[e[schemas.AttrBillRun]] = s
		}
		s.parts[n[0]] = true
		return parsePositions(l.topic, e[schemas.AttrBillAt], s.at)
	case schemas.TypeBill, schemas.TypeCorrection:
		n, err := e.numbers(schemas.AttrBillRevision, schemas.AttrBillRound)
		if err != nil {
			return err
		}
		p := published{revision: n[0], round: n[1], run: e[schemas.AttrBillRun]}
		if p.bill, err = e.bill(""); err != nil {
			return err
		}
		if was, ok := l.bills[keyOf(&p.bill)]; !ok || p.revision > was.revision {
			l.bills[keyOf(&p.bill)] = p
		}
	}
	return nil
}

// moved are the keys whose bills are not what was published last, in order.
func (l *ledger) moved(bills map[Key]usage.Bill) (out []Key) {
	for k, b := range bills {
		if p, ok := l.bills[k]; !ok && !zero(&b) || ok && !same(&p.bill, &b) {
			out = append(out, k)
		}
	}
	for k, p := range l.bills {
		if _, ok := bills[k]; !ok && !zero(&p.bill) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, Key.compare)
	return out
}

// same compares what is billed; copies do not move a bill.
func same(a, b *usage.Bill) bool {
	return a.SizeStart == b.SizeStart && a.SizeEnd == b.SizeEnd && a.Usage == b.Usage && a.Causes == b.Causes
}

func zero(b *usage.Bill) bool {
	return same(b, &usage.Bill{SizeStart: "0", SizeEnd: "0", Usage: "0"})
}
