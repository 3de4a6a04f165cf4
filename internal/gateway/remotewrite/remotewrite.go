package remotewrite

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Write is what one request holds.
type Write struct {
	// Events are the samples that can be stored.
	Events []schemas.Event
	// From says of which series, from 0, each event is.
	From    []int
	Refused []Refusal
	// Samples, Histograms and Exemplars count all that the request has.
	Samples, Histograms, Exemplars int

	series int
	space  int // bytes that further events may have
}

// Refusal says why samples of a series did not become events.
type Refusal struct {
	Series int // from 0
	Err    error
}

// Options bound a request.
type Options struct {
	// MaxBytes bounds the snappy block once decompressed, and what its events have together.
	MaxBytes int
	// MaxSamples bounds the samples, and the series.
	MaxSamples int
}

// label is a pair of a series.
type label struct{ name, value string }

// sample is one of either version; start is 0 for none.
type sample struct {
	value     float64
	ms, start int64
}

// identity is what all samples of a series have in common.
type identity struct {
	event schemas.Event
	attrs []schemas.Attr
}

const nameLabel = "__name__"

// identify makes an identity of a series' labels.
func identify(labels []label, unit, points string) (s identity, err error) {
	// A symbol of version 2.0 may be in any number of labels: none is looked through before their length is known.
	size := 0
	for _, l := range labels {
		if size += len(l.name) + len(l.value); size > schemas.MaxEventBytes {
			return s, fmt.Errorf("%w: its labels have more than %d bytes", ErrSeries, schemas.MaxEventBytes)
		}
	}
	seen := make(map[string]bool, len(labels))
	s.attrs = make([]schemas.Attr, 0, len(labels)+2)
	for _, l := range labels {
		switch {
		case l.name == "":
			return s, fmt.Errorf("%w: a label has no name", ErrSeries)
		case seen[l.name]:
			return s, fmt.Errorf("%w: the label %.64q is there twice", ErrSeries, l.name)
		case !utf8.ValidString(l.name) || !utf8.ValidString(l.value):
			return s, fmt.Errorf("%w: the label %.64q is not UTF-8", ErrSeries, l.name)
		}
		seen[l.name] = true
		switch {
		case l.value == "": // a label without a value is as none
		case l.name == nameLabel:
			s.event.Type = l.value
		case l.name == schemas.ColService:
			s.event.Service = l.value
		case l.name == schemas.ColUserID:
			s.event.UserID = l.value
		default:
			s.attrs = append(s.attrs, schemas.String(kinds.LabelKey(l.name), l.value))
		}
	}
	if s.event.Type == "" {
		return s, fmt.Errorf("%w: it has no label %s", ErrSeries, nameLabel)
	}
	if unit != "" {
		s.attrs = append(s.attrs, schemas.String(kinds.ColUnit, unit))
	}
	if points != "" {
		s.attrs = append(s.attrs, schemas.String(kinds.ColPoints, points))
	}
	return s, nil
}

// at is the series' event of a sample.
func (s *identity) at(p sample) schemas.Event {
	e := s.event
	e.Time = time.UnixMilli(p.ms).UTC()
	number, word := kinds.Number(p.value)
	attrs := make([]schemas.Attr, 0, len(s.attrs)+3)
	for _, a := range s.attrs {
		if word == "" || a.Key != kinds.ColPoints {
			attrs = append(attrs, a)
		}
	}
	attrs = append(attrs, schemas.Float64(kinds.ColValue, number))
	if word != "" {
		attrs = append(attrs, schemas.String(kinds.ColPoints, word))
	}
	if p.start > 0 && p.start <= p.ms {
		attrs = append(attrs, schemas.Time(kinds.ColStart, time.UnixMilli(p.start).UTC()))
	}
	e.Attrs = attrs
	return e
}

// add adds the samples of one series. The error is ErrTooLarge.
func (w *Write) add(o *Options, labels []label, unit, points string, samples []sample, histograms int) error {
	at := w.series
	if w.series++; w.series > o.MaxSamples {
		return fmt.Errorf("%w: more than %d series; send fewer at once", ErrTooLarge, o.MaxSamples)
	}
	w.Samples, w.Histograms = w.Samples+len(samples), w.Histograms+histograms
	if w.Samples > o.MaxSamples {
		return fmt.Errorf("%w: more than %d samples; send fewer at once", ErrTooLarge, o.MaxSamples)
	}
	s, err := identify(labels, unit, points)
	if err != nil {
		w.Refused = append(w.Refused, Refusal{at, err})
		return nil
	}
	if histograms > 0 {
		w.Refused = append(w.Refused, Refusal{at, fmt.Errorf("native histograms are not kept: %d of metric %.64q; scrape classic histograms, or drop them by write_relabel_configs", histograms, s.event.Type)})
	}
	for _, p := range samples {
		e := s.at(p)
		if w.space -= e.Bytes(); w.space < 0 {
			return fmt.Errorf("%w: its events have more than %d bytes; send fewer samples at once", ErrTooLarge, o.MaxBytes)
		}
		w.Events, w.From = append(w.Events, e), append(w.From, at)
	}
	return nil
}

// cumulative reports whether a series of a histogram or summary counts up, by its name.
func cumulative(name string) bool {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
