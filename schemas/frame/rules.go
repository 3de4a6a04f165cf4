package frame

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/almanac-events/almanac/schemas/kinds"

	"github.com/almanac-events/almanac/schemas"
)

// checkRules holds the open frame to the rules of its topic's kind, column by column. Its
// producer held every event to them, so that only a foreign one meets a refusal here.
func (r *Reader) checkRules() error {
	s := r.topic.Spec()
	for i := range s.Rules {
		c := r.ColumnIndex(s.Rules[i].Column)
		if c < 0 {
			continue // the frame is older than the field
		}
		if err := r.checkColumn(&s.Rules[i], c); err != nil {
			return err
		}
	}
	if len(s.Fields) > 0 {
		if err := r.checkAstray(s); err != nil {
			return err
		}
	}
	if s.Sorted {
		return r.checkOrder()
	}
	return nil
}

// checkColumn holds one column to a rule.
func (r *Reader) checkColumn(rule *kinds.Rule, c int) error {
	limits, least, counts := -1, -1, -1
	if rule.NotAfter != "" {
		limits = r.ColumnIndex(rule.NotAfter)
	}
	if rule.NotBelow != "" {
		least = r.ColumnIndex(rule.NotBelow)
	}
	if rule.BucketsOf != "" {
		counts = r.ColumnIndex(rule.BucketsOf)
	}
	col := &r.columns[c]
	for i := range r.rows {
		var err error
		switch col.Type {
		case kinds.WireString, kinds.WireLowCardinality:
			text := r.Text(c, i)
			if rule.NotEmpty && len(text) == 0 {
				err = schemas.EmptyValue(rule.Column)
			} else if len(rule.OneOf) > 0 {
				err = schemas.CheckWord(rule, string(text))
			} else if counts >= 0 {
				err = schemas.CheckBuckets(rule, text, r.fixed64(counts, i))
			}
		case kinds.WireInt64:
			if rule.Lo != 0 || rule.Hi != 0 {
				err = schemas.CheckWhole(rule, r.fixed64(c, i))
			}
		case kinds.WireFloat64:
			if rule.Finite {
				err = schemas.CheckNumber(rule, r.float64(c, i), r.least(least, i))
			}
		case kinds.WireTime:
			if limits >= 0 {
				err = schemas.CheckNotAfter(rule, r.fixed64(c, i), r.fixed64(limits, i))
			}
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	return nil
}

// checkAstray refuses attributes that belong in a column of the kind: the column would say
// zero, and the value would not count.
func (r *Reader) checkAstray(s *kinds.Spec) error {
	col := &r.columns[inAttributes]
	for i := range len(col.words.ends) - len(col.keys) { // the names; the values follow them
		if name := r.word(col, i); s.Field(name) != nil {
			return fmt.Errorf("%w: %s is an attribute and not in its column; a value that is not %s is refused", schemas.ErrValue, name, schemas.TypeNouns[s.Field(name).Type])
		}
	}
	return nil
}

// fixed64 is event i's value of a column of eight bytes.
func (r *Reader) fixed64(c, i int) int64 {
	return int64(binary.LittleEndian.Uint64(r.columns[c].fixed[8*i:]))
}

func (r *Reader) float64(c, i int) float64 { return math.Float64frombits(r.Bits(c, i)) }

// least is event i's value of a column that another may not be below; c is -1 for none.
func (r *Reader) least(c, i int) float64 {
	if c < 0 {
		return math.Inf(-1)
	}
	return r.float64(c, i)
}

// bytesOf is a word of a column, valid until the next Open.
func (r *Reader) bytesOf(col *openColumn, i int) []byte {
	return r.raw[col.words.starts[i]:col.words.ends[i]]
}
