package otlp

import (
	"cmp"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

const (
	typeProto = "application/x-protobuf"
	typeJSON  = "application/json"
)

// Routes returns the handler of an OTLP/HTTP listener.
func (in *Input) Routes() http.Handler {
	mux := http.NewServeMux()
	for path, of := range map[string]service{"/v1/logs": in.logs(), "/v1/metrics": in.metrics()} {
		handler := func(w http.ResponseWriter, r *http.Request) { in.serve(w, r, of) }
		mux.HandleFunc("POST "+path, handler)
		mux.HandleFunc("POST /t/{topic}"+path, handler)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, isJSON := contentType(r)
		fail(w, isJSON, http.StatusNotFound, codeUnimplemented, "this endpoint takes logs and metrics only, at POST /v1/logs, /v1/metrics and below /t/{topic}; turn the export of traces and profiles to it off")
	})
	return mux
}

// contentType returns that of the answer, which is the request's.
func contentType(r *http.Request) (known, isJSON bool) {
	t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return t == typeProto || t == typeJSON || t == "application/protobuf", t == typeJSON
}

func (in *Input) serve(w http.ResponseWriter, r *http.Request, of service) {
	known, isJSON := contentType(r)
	if !known {
		fail(w, isJSON, http.StatusUnsupportedMediaType, codeInvalidArgument, "the content type must be "+typeProto+" or "+typeJSON)
		return
	}
	req := in.cfg.Pool.Begin(pool.InputOTLPHTTP)
	defer req.End()
	answer, err := in.receive(w, r, req, of, isJSON)
	if err != nil {
		Fail(w, r, err)
		return
	}
	write(w, isJSON, http.StatusOK, answer)
}

func (in *Input) receive(w http.ResponseWriter, r *http.Request, req *pool.Request, of service, isJSON bool) ([]byte, error) {
	if err := req.Ready(r.Context()); err != nil {
		return nil, err
	}
	body, err := request.Body(w, r, req, weight)
	if err != nil {
		return nil, err
	}
	topic := cmp.Or(r.PathValue("topic"), r.Header.Get(TopicKey), of.topic)
	return of.export(r.Context(), req, topic, r.Header.Get("Idempotency-Key"), body, isJSON)
}

// response is the answer to an export.
type response interface {
	MarshalJSON() ([]byte, error)
	MarshalProto() ([]byte, error)
}

// encode leaves partial_success out where there is nothing to say: clients take any for
// a warning. The library always writes it.
func encode(resp response, partial, isJSON bool) ([]byte, error) {
	switch {
	case isJSON && !partial:
		return []byte("{}"), nil
	case !partial:
		return []byte{}, nil
	case isJSON:
		return resp.MarshalJSON()
	}
	return resp.MarshalProto()
}

// Fail answers with an error as a google.rpc.Status, in the request's content type, and
// says when to send the request again where that helps.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	_, isJSON := contentType(r)
	code, status := grpcCode(err)
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if after := pool.RetryAfter(err); after > 0 && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())))
	}
	fail(w, isJSON, status, code, err.Error())
}

// fail answers with a google.rpc.Status.
func fail(w http.ResponseWriter, isJSON bool, status int, code uint32, message string) {
	var body []byte
	if isJSON {
		body, _ = json.Marshal(map[string]any{"code": code, "message": message}) // of plain values
	} else {
		body = protowire.AppendTag(body, 1, protowire.VarintType)
		body = protowire.AppendVarint(body, uint64(code))
		body = protowire.AppendTag(body, 2, protowire.BytesType)
		body = protowire.AppendString(body, message)
	}
	write(w, isJSON, status, body)
}

func write(w http.ResponseWriter, isJSON bool, status int, body []byte) {
	w.Header().Set("Content-Type", typeProto)
	if isJSON {
		w.Header().Set("Content-Type", typeJSON)
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // a protobuf or JSON that we encoded, never HTML; it fails where the client is gone
}
