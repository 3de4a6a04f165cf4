package otlp

import (
	"errors"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/schemas"
)

// knownForm is what a pool knows the series of data points by: said writes it.
const knownForm = "otlp"

// pointBytes is what a point of a known series holds.
const pointBytes = 104

// known takes number data points as points of series that the pool remembers, so that the labels of most are not read.
type known struct {
	to   *pool.Target
	said []byte // of the last point
	last *pool.Series
	held int
	hold func(n int) error // counts what the request holds
	each func(err error)   // hears of each point that is taken or refused
	err  error             // why the request ends
}

// errTaken: a data point needs no event.
var errTaken = errors.New("taken as a point of a series")

// take takes a point of a metric; false: it needs an event.
func (k *known) take(m *metric, at, start pcommon.Timestamp, attrs pcommon.Map, value float64, word string) bool {
	if k == nil || m.bad != nil || at == 0 || at > math.MaxInt64 || start > math.MaxInt64 {
		return false
	}
	var plain bool
	if k.said, plain = m.said(k.said[:0], attrs); !plain {
		return false
	}
	s, err := k.to.Series(knownForm, k.said, word, func() (schemas.Event, error) { return m.labelled(attrs, word) })
	switch {
	case err != nil:
		k.to.Refuse(err)
	case s == nil:
		return false
	default:
		n := pointBytes
		if s != k.last {
			k.last, n = s, n+s.Bytes()
		}
		if k.held += n; k.held > maxPointBytes {
			k.err = fmt.Errorf("%w: with their labels they have more than %d MiB; send fewer at once", ErrManyPoints, maxPointBytes>>20)
			return true
		}
		if k.err = k.hold(n); k.err != nil {
			return true
		}
		err = k.to.AddPoint(s, pool.Point{Time: int64(at), Value: value, Start: int64(start)})
	}
	k.each(err)
	return true
}

// said appends what tells the series of a data point: equal bytes are equal events but for time, value and start. plain is
// false where an attribute is a map, a list or of bytes.
func (m *metric) said(dst []byte, attrs pcommon.Map) (said []byte, plain bool) {
	dst = protowire.AppendBytes(dst, m.from.said)
	for _, text := range []string{m.name, m.unit, m.points} {
		dst = protowire.AppendString(dst, text)
	}
	for name, v := range attrs.All() {
		dst = append(protowire.AppendString(dst, name), byte(v.Type()))
		switch v.Type() {
		case pcommon.ValueTypeStr:
			dst = protowire.AppendString(dst, v.Str())
		case pcommon.ValueTypeInt:
			dst = protowire.AppendFixed64(dst, uint64(v.Int()))
		case pcommon.ValueTypeDouble:
			dst = protowire.AppendFixed64(dst, math.Float64bits(v.Double()))
		case pcommon.ValueTypeBool:
			dst = append(dst, byte(protowire.EncodeBool(v.Bool())))
		case pcommon.ValueTypeEmpty:
		default:
			return dst, false
		}
	}
	return dst, true
}

// say notes what all data points of the resource and scope have in common. Where that has names which cannot be stored
// nothing is known.
func (s *source) say() {
	if len(s.labels.rest) > 0 {
		s.known = nil
	}
	s.said = protowire.AppendString(protowire.AppendString(nil, s.service), s.user)
	for i := range s.labels.list {
		s.said = protowire.AppendString(protowire.AppendString(s.said, s.labels.list[i].Key), s.labels.list[i].Text())
	}
}
