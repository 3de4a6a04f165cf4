package remotewrite

import (
	"errors"
	"fmt"

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

// Decode1 reads a request of version 1.0.
func Decode1(body []byte, o Options) (Write, error) {
	var series prompb.TimeSeries
	var labels []label
	var samples []sample
	return decode(body, &o, func(w *Write, raw []byte) error {
		return fields(raw, func(n protowire.Number, v []byte) error {
			if n != seriesOf1 {
				return nil // metadata
			}
			series.Reset()
			if err := unmarshal(v, &series); err != nil {
				return err
			}
			labels, samples = labels[:0], samples[:0]
			for i := range series.Labels {
				labels = append(labels, label{series.Labels[i].Name, series.Labels[i].Value})
			}
			for i := range series.Samples {
				samples = append(samples, sample{series.Samples[i].Value, series.Samples[i].Timestamp, 0})
			}
			w.Exemplars += len(series.Exemplars)
			return w.add(&o, labels, "", "", samples, len(series.Histograms))
		})
	})
}

// Decode2 reads a request of version 2.0.
func Decode2(body []byte, o Options) (Write, error) {
	var series writev2.TimeSeries
	var labels []label
	var samples []sample
	return decode(body, &o, func(w *Write, raw []byte) error {
		symbols, err := symbolsIn(raw, &o)
		if err != nil {
			return err
		}
		return fields(raw, func(n protowire.Number, v []byte) error {
			if n != seriesOf2 {
				return nil
			}
			series.Reset()
			if err := unmarshal(v, &series); err != nil {
				return err
			}
			labels, samples = labels[:0], samples[:0]
			refs := series.LabelsRefs
			if len(refs)%2 != 0 {
				return fmt.Errorf("a series has %d references to labels, which is odd", len(refs))
			}
			for i := 0; i < len(refs); i += 2 {
				if int(max(refs[i], refs[i+1])) >= len(symbols) {
					return fmt.Errorf("a label refers to symbol %d of %d", max(refs[i], refs[i+1]), len(symbols))
				}
				labels = append(labels, label{symbols[refs[i]], symbols[refs[i+1]]})
			}
			unit := ""
			if ref := series.Metadata.UnitRef; int(ref) < len(symbols) {
				unit = symbols[ref]
			} else if ref > 0 {
				return fmt.Errorf("a unit refers to symbol %d of %d", ref, len(symbols))
			}
			for i := range series.Samples {
				samples = append(samples, sample{series.Samples[i].Value, series.Samples[i].Timestamp, series.Samples[i].StartTimestamp})
			}
			w.Exemplars += len(series.Exemplars)
			return w.add(&o, labels, unit, pointsOf(series.Metadata.Type, labels), samples, len(series.Histograms))
		})
	})
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

func unmarshal(v []byte, into interface{ Unmarshal([]byte) error }) error {
	if len(v) > maxSeriesBytes {
		return fmt.Errorf("%w: a series has %d bytes, the limit is %d; send fewer of its samples at once", ErrTooLarge, len(v), maxSeriesBytes)
	}
	return into.Unmarshal(v)
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
