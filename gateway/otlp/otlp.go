package otlp

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/almanac-events/almanac/gateway/pool"
	"github.com/almanac-events/almanac/gateway/request"
	"github.com/almanac-events/almanac/schemas"
)

// TopicKey is the header, and in gRPC the metadata, that names the topic.
const TopicKey = "almanac-topic"

// weight is how many bytes a byte of a body holds while it is decoded and taken: measured
// three times as decoded events, and the body itself.
const weight = 4

// Config of the input.
type Config struct {
	Pool *pool.Pool
	// Topic gets the records of requests that name none.
	Topic string
	// EachTime stores a request again that is sent again (otlp_once: false).
	EachTime bool
}

// Input takes OTLP logs.
type Input struct{ cfg Config }

// New prepares the input.
func New(cfg Config) *Input { return &Input{cfg} }

// export takes the records of a request and returns when they are stored.
func (in *Input) export(ctx context.Context, req *pool.Request, topic, key string, body []byte, isJSON bool) (plogotlp.ExportResponse, error) {
	resp := plogotlp.NewExportResponse()
	var events []schemas.Event
	rejected, first, timed := 0, error(nil), true
	reject := func(err error) {
		if rejected++; first == nil {
			first = err
		}
	}
	err := Decode(body, isJSON, func(ev *schemas.Event, err error) {
		if err != nil {
			reject(err)
			return
		}
		timed = timed && !ev.Time.IsZero()
		events = append(events, *ev)
	})
	if err != nil {
		return resp, err
	}
	switch {
	case key != "":
		req.Key("otlp " + key)
	case timed && !in.cfg.EachTime:
		req.Key("otlp")
	}
	to, err := req.To(ctx, topic)
	if err != nil {
		return resp, err
	}
	for i := range events {
		if err := to.Add(events[i]); err != nil {
			reject(err)
		}
	}
	repeated, err := req.Store(ctx)
	if err != nil {
		return resp, err
	}
	if rejected > 0 {
		resp.PartialSuccess().SetRejectedLogRecords(int64(rejected))
		resp.PartialSuccess().SetErrorMessage(fmt.Sprintf("%d of %d log records are refused; the first: %v", rejected, rejected+req.Len(), first))
	} else if repeated {
		resp.PartialSuccess().SetErrorMessage("this request was stored before and is counted once")
	}
	return resp, nil
}

// grpcCode is the code of google.rpc.Status for an error.
func grpcCode(err error) (code uint32, httpStatus int) {
	var own *request.Error
	status := http.StatusBadRequest
	switch {
	case errors.As(err, &own):
		status = own.Status
	case errors.Is(err, ErrTooMany):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrRequest):
	default:
		status = pool.Status(err)
	}
	switch status {
	case http.StatusNotFound:
		return codeNotFound, status
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return codeResourceExhausted, status
	case http.StatusServiceUnavailable:
		return codeUnavailable, status
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
	codeInvalidArgument   = 3
	codeNotFound          = 5
	codePermissionDenied  = 7
	codeResourceExhausted = 8
	codeUnimplemented     = 12
	codeInternal          = 13
	codeUnavailable       = 14
)
