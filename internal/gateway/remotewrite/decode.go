package remotewrite

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Field numbers of the requests. Their series are decoded one at a time, so that a request
// never takes more memory than its events and one series.
const (
	seriesOf1  = 1
	symbolsOf2 = 4
	seriesOf2  = 5

	// maxSeriesBytes bounds one series as it is encoded: an empty label takes 2 bytes there,
	// and 50 once decoded.
	maxSeriesBytes = 2 << 20
)

// What a pool knows series by: how Series.Said is written.
const (
	form1 = "remote write 1.0"
	form2 = "remote write 2.0"
)

// The fields of a series of version 1.0.
const (
	labelsOf1     = 1
	samplesOf1    = 2
	exemplarsOf1  = 3
	histogramsOf1 = 4
)

// Decode1 reads a request of version 1.0. What it returns shares the memory of the unpacked request.
func Decode1(body []byte, o Options) (Write, error) {
	return decode(body, &o, func(w *Write, raw []byte) error {
		w.form, w.read = form1, labels1
		return fields(raw, func(n protowire.Number, v []byte) error {
			if n != seriesOf1 {
				return nil // metadata
			}
			return w.series1(&o, v)
		})
	})
}

// series1 adds a series of version 1.0.
func (w *Write) series1(o *Options, v []byte) error {
	if err := w.begin(o, v); err != nil {
		return err
	}
	said := leading(v, labelsOf1)
	clipped := said[:len(said):len(said)] // labels that are not together get memory of their own
	err := fields(v[len(said):], func(n protowire.Number, f []byte) error {
		switch n {
		case labelsOf1:
			clipped = protowire.AppendBytes(protowire.AppendTag(clipped, labelsOf1, protowire.BytesType), f)
		case samplesOf1:
			s, err := sample1(f)
			if err != nil {
				return err
			}
			return w.sample(o, s)
		case exemplarsOf1:
			w.Exemplars++
			return new(prompb.Exemplar).Unmarshal(f)
		case histogramsOf1:
			w.histogram()
			return new(prompb.Histogram).Unmarshal(f)
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.Series[len(w.Series)-1].Said = clipped
	return nil
}

// sample1 reads a sample. Nearly all are a value and a time.
func sample1(v []byte) (s sample, err error) {
	if len(v) > 10 && v[0] == 0x09 && v[9] == 0x10 {
		if ms, n := protowire.ConsumeVarint(v[10:]); n == len(v)-10 {
			return sample{value: math.Float64frombits(binary.LittleEndian.Uint64(v[1:])), ms: int64(ms)}, nil
		}
	}
	var p prompb.Sample
	err = p.Unmarshal(v)
	return sample{value: p.Value, ms: p.Timestamp}, err
}

// labels1 reads the labels of a series of version 1.0.
func labels1(said []byte) (labels []label, unit, points string, err error) {
	var series prompb.TimeSeries
	if err := series.Unmarshal(said); err != nil {
		return nil, "", "", err
	}
	for i := range series.Labels {
		labels = append(labels, label{series.Labels[i].Name, series.Labels[i].Value})
	}
	return labels, "", "", nil
}

// leading returns the first bytes of a message that are fields of that number and of bytes.
func leading(v []byte, number protowire.Number) []byte {
	at := 0
	for at < len(v) {
		n, kind, size := protowire.ConsumeTag(v[at:])
		if size < 0 || n != number || kind != protowire.BytesType {
			break
		}
		_, more := protowire.ConsumeBytes(v[at+size:])
		if more < 0 {
			break
		}
		at += size + more
	}
	return v[:at]
}

// Decode2 reads a request of version 2.0.
func Decode2(body []byte, o Options) (Write, error) {
	return decode(body, &o, func(w *Write, raw []byte) error {
		w.form, w.read = form2, labels2
		symbols, err := symbolsIn(raw, &o)
		if err != nil {
			return err
		}
		var series writev2.TimeSeries
		return fields(raw, func(n protowire.Number, v []byte) error {
			if n != seriesOf2 {
				return nil
			}
			series.Reset()
			if err := w.begin(&o, v); err != nil {
				return err
			}
			if err := series.Unmarshal(v); err != nil {
				return err
			}
			for i := range series.Samples {
				p := &series.Samples[i]
				if err := w.sample(&o, sample{value: p.Value, ms: p.Timestamp, start: p.StartTimestamp}); err != nil {
					return err
				}
			}
			w.Exemplars += len(series.Exemplars)
			for range series.Histograms {
				w.histogram()
			}
			last := &w.Series[len(w.Series)-1]
			var err error
			last.Said, last.long, err = said2(&series, symbols)
			if last.long {
				last.Said = nil
			}
			return cmp.Or(err, w.take(&o, len(last.Said)))
		})
	})
}

// said2 is what a series of version 2.0 says, without the numbers of its request's symbols: its type, its unit and its
// labels, each after its length. long says that it is more than an event may have.
func said2(series *writev2.TimeSeries, symbols []string) (said []byte, long bool, err error) {
	refs, unit := series.LabelsRefs, series.Metadata.UnitRef
	if len(refs)%2 != 0 {
		return nil, false, fmt.Errorf("a series has %d references to labels, which is odd", len(refs))
	}
	if int(unit) >= len(symbols) && unit > 0 {
		return nil, false, fmt.Errorf("a unit refers to symbol %d of %d", unit, len(symbols))
	}
	said = protowire.AppendVarint(nil, uint64(series.Metadata.Type))
	add := func(text string) {
		if long = long || len(said)+len(text) > maxSaidBytes; !long {
			said = protowire.AppendString(said, text)
		}
	}
	if int(unit) < len(symbols) {
		add(symbols[unit])
	} else {
		add("")
	}
	for _, ref := range refs {
		if int(ref) >= len(symbols) {
			return nil, false, fmt.Errorf("a label refers to symbol %d of %d", ref, len(symbols))
		}
		add(symbols[ref])
	}
	return said, long, nil
}

// labels2 reads what said2 wrote.
func labels2(said []byte) (labels []label, unit, points string, err error) {
	kind, n := protowire.ConsumeVarint(said)
	said = said[max(n, 0):]
	next := func() string {
		v, n := protowire.ConsumeBytes(said)
		said = said[max(n, 0):]
		return string(v)
	}
	unit = next()
	for len(said) > 0 {
		labels = append(labels, label{next(), next()})
	}
	return labels, unit, pointsOf(writev2.Metadata_MetricType(kind), labels), nil
}

// pointsOf is the kind of a series' points by the type of its metric.
func pointsOf(kind writev2.Metadata_MetricType, labels []label) string {
	switch kind {
	case writev2.Metadata_METRIC_TYPE_COUNTER:
		return kinds.PointsCumulative
	case writev2.Metadata_METRIC_TYPE_GAUGE, writev2.Metadata_METRIC_TYPE_INFO, writev2.Metadata_METRIC_TYPE_STATESET, writev2.Metadata_METRIC_TYPE_GAUGEHISTOGRAM:
		return kinds.PointsGauge
	case writev2.Metadata_METRIC_TYPE_HISTOGRAM, writev2.Metadata_METRIC_TYPE_SUMMARY:
		for _, l := range labels {
			if l.name == nameLabel && cumulative(l.value) {
				return kinds.PointsCumulative
			}
		}
		return kinds.PointsGauge
	}
	return ""
}

// decode unpacks a body and reads it.
func decode(body []byte, o *Options, read func(*Write, []byte) error) (Write, error) {
	raw, size, err := request.Snappy(body, o.MaxBytes)
	switch {
	case err != nil:
		return Write{}, fmt.Errorf("%w: it must be a snappy block: %w", ErrWrite, err)
	case size > o.MaxBytes:
		return Write{}, fmt.Errorf("%w: %d bytes decompressed, the limit is %d; send fewer samples at once", ErrTooLarge, size, o.MaxBytes)
	}
	w := Write{space: o.MaxBytes}
	switch err := read(&w, raw); {
	case errors.Is(err, ErrTooLarge):
		return Write{}, err
	case err != nil:
		return Write{}, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return w, nil
}

func symbolsIn(raw []byte, o *Options) (symbols []string, err error) {
	limit := 10 * o.MaxSamples
	err = fields(raw, func(n protowire.Number, v []byte) error {
		if n != symbolsOf2 {
			return nil
		}
		if len(symbols) == limit {
			return fmt.Errorf("%w: more than %d symbols; send fewer series at once", ErrTooLarge, limit)
		}
		symbols = append(symbols, string(v))
		return nil
	})
	if err == nil && len(symbols) > 0 && symbols[0] != "" {
		err = fmt.Errorf("the first symbol is %.64q, it must be empty", symbols[0])
	}
	return symbols, err
}

// fields calls f for each field of a message that has bytes.
func fields(b []byte, f func(n protowire.Number, v []byte) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var v []byte
		if kind == protowire.BytesType {
			v, size = protowire.ConsumeBytes(b)
		} else {
			size = protowire.ConsumeFieldValue(n, kind, b)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		if kind == protowire.BytesType {
			if err := f(n, v); err != nil {
				return err
			}
		}
	}
	return nil
}
