package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
)

// TopicKey is the header, and in gRPC the metadata, that names the topic.
const TopicKey = "almanac-topic"

// weight is how many bytes a byte of a body holds while it is decoded and taken: measured
// three times as decoded events, and the body itself.
const weight = 4

const (
	// maxEventsBytes bounds what the events of one request hold together: each has the attributes
	// of its resource and scope again. 100,000 records with thirty attributes hold as much. It is
	// not reserved: a request that waits for room while it has some may wait for one that waits for it.
	maxEventsBytes = 256 << 20
	// eventBytes is what an event holds besides its texts and attributes.
	eventBytes = 256
)

// Config of the input.
type Config struct {
	Pool *pool.Pool
	// Topic gets the records of requests that name none, MetricsTopic the data points.
	Topic, MetricsTopic string
	// EachTime stores a request again that is sent again (otlp_once: false).
	EachTime bool
	// Loopback says that the listener of gRPC is on loopback (package guard).
	Loopback bool
	// Who says who makes a call over gRPC; nil: Almanac itself, of whom nothing is asked. Over HTTP the request's context says it.
	Who func(context.Context, *access.Asked) (*access.Principal, error)
	// OnCall hears of each call over gRPC that was answered, by its code of HTTP; nil: it is not heard.
	OnCall func(code int, took time.Duration, received int)
	// OnLimit hears of each call over gRPC that is refused because too many are under way; it may be nil.
	OnLimit request.OnLimit
	// OnError hears of faults in calls over gRPC, with their stack; nil: they are not heard.
	OnError func(error)
}

// Input takes OTLP logs and metrics.
type Input struct{ cfg Config }

// New prepares the input.
func New(cfg Config) *Input { return &Input{cfg} }

// service is one of the protocol: what takes its requests, and the topic of those that name none.
type service struct {
	topic  string
	export func(ctx context.Context, req *pool.Request, topic, key string, body []byte, isJSON bool) (answer []byte, err error)
}

func (in *Input) logs() service    { return service{in.cfg.Topic, in.export} }
func (in *Input) metrics() service { return service{in.cfg.MetricsTopic, in.exportMetrics} }

// export takes the records of a request and returns when they are stored.
func (in *Input) export(ctx context.Context, req *pool.Request, topic, key string, body []byte, isJSON bool) ([]byte, error) {
	to, err := req.To(ctx, topic)
	if err != nil {
		return nil, err
	}
	logs, err := Parse(body, isJSON)
	if err != nil {
		return nil, err
	}
	told, err := in.take(ctx, req, to, logs, key)
	if err != nil {
		return nil, err
	}
	repeated, err := req.Store(ctx)
	if err != nil {
		return nil, err
	}
	resp := plogotlp.NewExportResponse()
	message := told.message(repeated, req.Erased())
	resp.PartialSuccess().SetRejectedLogRecords(told.rejected)
	resp.PartialSuccess().SetErrorMessage(message)
	return encode(resp, message != "", isJSON)
}

// ownKey is a client's key as one of who asks: under that of another the answer would say whether that one sent the same.
func ownKey(ctx context.Context, key string) string {
	return "otlp " + access.From(ctx).Name + " " + key
}

// take adds the records to the request. Without a key of its own the request's events are the
// key, where all of them have a time: most requests are like that, so it is tried first.
func (in *Input) take(ctx context.Context, req *pool.Request, to *pool.Target, logs Logs, key string) (told partial, err error) {
	keys := []string{"otlp", ""}
	switch {
	case key != "":
		keys = []string{ownKey(ctx, key)}
	case in.cfg.EachTime:
		keys = keys[1:]
	}
	for _, key := range keys {
		untimed, held := false, 0
		req.Key(key)
		to.Expect(logs.Len())
		told = partial{}
		err = logs.Events(to.Topic(), func(ev *schemas.Event, err error) error {
			decoded := err
			if err == nil && !untimed {
				err = to.Add(*ev)
				held += eventBytes + ev.Bytes() + attrBytes*len(ev.Attrs)
			}
			if decoded != nil {
				to.Refuse(decoded)
			}
			untimed = untimed || errors.Is(err, pool.ErrKeyTime) && key != keys[len(keys)-1]
			told.record(ev, err)
			if held > maxEventsBytes {
				return fmt.Errorf("%w: with the attributes of their resources and scopes they have more than %d MiB; send fewer at once", ErrTooMany, maxEventsBytes>>20)
			}
			return ctx.Err()
		})
		if err != nil || !untimed {
			break
		}
	}
	return told, err
}

// grpcCode is the code of google.rpc.Status for an error.
func grpcCode(err error) (code uint32, httpStatus int) {
	var own *request.Error
	status := http.StatusBadRequest
	switch {
	case errors.As(err, &own):
		status = own.Status
	case errors.Is(err, ErrTooMany), errors.Is(err, ErrManyPoints):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrRequest), errors.Is(err, ErrMetrics):
	default:
		status = pool.Status(err)
	}
	switch status {
	case http.StatusNotFound:
		return codeNotFound, status
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return codeResourceExhausted, status
	case http.StatusConflict:
		return codeFailedPrecondition, status
	case http.StatusServiceUnavailable:
		return codeUnavailable, status
	case http.StatusUnauthorized:
		return codeUnauthenticated, status
	case http.StatusForbidden, http.StatusMisdirectedRequest:
		return codePermissionDenied, status
	case http.StatusInternalServerError:
		return codeInternal, status
	case http.StatusRequestTimeout: // exporters do not send again after 408
		return codeUnavailable, http.StatusServiceUnavailable
	}
	return codeInvalidArgument, status
}

// Codes of google.rpc.Status.
const (
	codeInvalidArgument    = 3
	codeNotFound           = 5
	codePermissionDenied   = 7
	codeUnauthenticated    = 16
	codeResourceExhausted  = 8
	codeFailedPrecondition = 9
	codeUnimplemented      = 12
	codeInternal           = 13
	codeUnavailable        = 14
)
