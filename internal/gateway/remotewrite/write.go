package remotewrite

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Bounds of a request.
const (
	// MaxSamples bounds the samples of one request, and its series.
	MaxSamples = 100_000
	// weight is how many bytes a byte of the body holds while it is decoded. The events that
	// come of it are counted beside it.
	weight = 2
	// maxShown bounds the refusals that an answer names.
	maxShown = 10
)

// What the specification calls the two messages, and the headers of an answer.
const (
	message1         = "prometheus.WriteRequest"
	message2         = "io.prometheus.write.v2.Request"
	headerSamples    = "X-Prometheus-Remote-Write-Samples-Written"
	headerHistograms = "X-Prometheus-Remote-Write-Histograms-Written"
	headerExemplars  = "X-Prometheus-Remote-Write-Exemplars-Written"
)

// Config of the input.
type Config struct {
	Pool *pool.Pool
	// Topic takes what names no topic by its path.
	Topic string
}

// Input is the handler of a request. Its path may name a topic as {topic}.
type Input struct{ cfg Config }

// New prepares the input.
func New(cfg Config) *Input { return &Input{cfg} }

// ServeHTTP implements http.Handler. Success is 204 without a body; all else is text.
func (in *Input) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	written, err := in.serve(w, r)
	w.Header().Set(headerSamples, strconv.Itoa(written))
	w.Header().Set(headerHistograms, "0")
	w.Header().Set(headerExemplars, "0")
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	request.Text(w, r, err)
}

// serve returns how many samples are stored.
func (in *Input) serve(w http.ResponseWriter, r *http.Request) (int, error) {
	decode, err := decoder(r)
	if err != nil {
		return 0, err
	}
	req := in.cfg.Pool.Begin(pool.InputRemoteWrite)
	defer req.End()
	if err := req.Ready(r.Context()); err != nil {
		return 0, err
	}
	body, err := request.Packed(w, r, req, weight)
	if err != nil {
		return 0, err
	}
	to, err := req.To(r.Context(), cmp.Or(r.PathValue("topic"), in.cfg.Topic))
	if err != nil {
		return 0, err
	}
	if t := to.Topic(); t.Kind != kinds.Metric {
		return 0, request.Refuse(http.StatusBadRequest, "wrong_kind", fmt.Sprintf("topic %q is of kind %s; samples go to topics of kind %s", t.Name, t.Kind, kinds.Metric),
			"declare one with `"+kinds.Metric.Declare("NAME")+"`, and write to /t/NAME/api/v1/write")
	}
	o := Options{MaxBytes: request.MaxBytes, MaxSamples: MaxSamples}
	if err := request.GrowSnappy(r.Context(), req, body, o.MaxBytes, weight); err != nil {
		return 0, err
	}
	write, err := decode(body, o)
	switch {
	case errors.Is(err, ErrTooLarge):
		return 0, request.Refuse(http.StatusRequestEntityTooLarge, "too_large", err.Error(), "")
	case err != nil:
		return 0, request.Refuse(http.StatusBadRequest, "bad_write", err.Error(), "")
	}
	return store(r, req, to, &write)
}

// store takes the samples of a request and answers for those it refuses.
func store(r *http.Request, req *pool.Request, to *pool.Target, write *Write) (int, error) {
	refused := refusals{n: write.Histograms}
	to.ExpectPoints(write.Samples)
	a := adder{to: to, write: write, refused: &refused}
	holding := request.Holding{Request: req}
	if err := holding.Add(r.Context(), request.MaxBytes-write.space); err != nil {
		return 0, err
	}
	for i := range write.Series {
		before := a.held + a.series
		if err := a.add(i, &write.Series[i]); err != nil {
			return 0, err
		}
		if err := holding.Add(r.Context(), a.held+a.series-before); err != nil {
			return 0, err
		}
	}
	if err := holding.End(r.Context()); err != nil {
		return 0, err
	}
	n := req.Len()
	refused.n += write.Samples - n
	if n > 0 {
		if _, err := req.Store(r.Context()); err != nil {
			return 0, err
		}
	}
	return n, refused.answer(write.Samples + write.Histograms)
}

// adder adds the samples of a request to its topic.
type adder struct {
	to      *pool.Target
	write   *Write
	refused *refusals
	held    int // bytes of events that are not points of a series

	known  *pool.Series // the last one
	series int          // bytes of all
}

// add adds the samples of series i. Its error is that of the whole request.
func (a *adder) add(i int, s *Series) error {
	if s.Histograms > 0 || s.from == s.to {
		e, err := a.write.Event(s, "")
		if err != nil {
			return a.refuse(i, err)
		}
		if s.Histograms > 0 {
			err = fmt.Errorf("native histograms are not kept: %d of metric %.64q; scrape classic histograms, or drop them by write_relabel_configs", s.Histograms, e.Type)
			if err = a.refuse(i, err); err != nil {
				return err
			}
		}
	}
	for _, p := range a.write.points[s.from:s.to] {
		switch err := a.sample(i, s, p); {
		case errors.Is(err, ErrSeries):
			return a.refuse(i, err) // once for all its samples
		case err != nil:
			return err
		}
	}
	return nil
}

// sample adds one sample: as a point of a series that the pool knows, or else as an event. Its error is that of the
// whole request, or ErrSeries.
func (a *adder) sample(i int, s *Series, p sample) error {
	pt, word, err := p.point()
	if err != nil {
		return a.refuse(i, err)
	}
	known, err := a.to.Series(a.write.form, s.Said, word, func() (schemas.Event, error) { return a.write.Event(s, word) })
	switch {
	case errors.Is(err, ErrSeries):
		return err
	case err != nil:
		return a.refuse(i, err)
	case known != nil:
		if a.known != known {
			a.known, a.series = known, a.series+known.Bytes()
		}
		err = a.to.AddPoint(known, pt)
	default:
		e, bad := a.write.Event(s, word)
		if bad != nil {
			return bad
		}
		e = schemas.PointOf(e, pt.Time, pt.Value, pt.Start)
		if a.held += e.Bytes(); a.held > request.MaxBytes {
			return request.Refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("%v: its events have more than %d bytes; send fewer samples at once", ErrTooLarge, request.MaxBytes), "")
		}
		err = a.to.Add(e)
	}
	if err != nil {
		a.refused.name(i, err)
	}
	return nil
}

// refuse notes why a sample, or a series, is not taken; a request that cannot be read ends with it.
func (a *adder) refuse(i int, err error) error {
	if errors.Is(err, ErrWrite) {
		return request.Refuse(http.StatusBadRequest, "bad_write", err.Error(), "")
	}
	a.refused.name(i, err)
	a.to.Refuse(err)
	return nil
}

// decoder is that of the request's message; what is not known is 415, as the specification
// has it.
func decoder(r *http.Request) (func([]byte, Options) (Write, error), error) {
	unsupported := func(what, value string) error {
		return request.Refuse(http.StatusUnsupportedMediaType, "unsupported_type", fmt.Sprintf("%s %q is not known", what, value),
			"send application/x-protobuf with proto="+message1+" or proto="+message2+", and Content-Encoding snappy")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "snappy") {
		return nil, unsupported("Content-Encoding", encoding)
	}
	text := r.Header.Get("Content-Type")
	kind, params, err := mime.ParseMediaType(text)
	if err != nil || kind != "application/x-protobuf" {
		return nil, unsupported("Content-Type", text)
	}
	switch params["proto"] {
	case "", message1:
		return Decode1, nil
	case message2:
		return Decode2, nil
	}
	return nil, unsupported("Content-Type", text)
}

// refusals are samples that were not taken; the first few reasons are named.
type refusals struct {
	n     int
	named []string
	last  string
}

func (f *refusals) name(series int, err error) {
	text := fmt.Sprintf("series %d: %v", series+1, err)
	if len(f.named) < maxShown && text != f.last {
		f.named, f.last = append(f.named, text), text
	}
}

// answer is what the client is told; the other samples are stored.
func (f *refusals) answer(all int) error {
	if f.n == 0 && len(f.named) == 0 {
		return nil
	}
	return request.Refuse(http.StatusBadRequest, "refused",
		fmt.Sprintf("%d of %d samples refused, the others are stored: %s", f.n, all, strings.Join(f.named, "; ")), "")
}
