package promapi

import (
	"bufio"
	"encoding/json"
	"net/http"

	"github.com/prometheus/prometheus/promql"
)

// write answers a request. A result is written series by series, so that it is in memory once.
func write(w http.ResponseWriter, all *answer) error {
	head(w, http.StatusOK)
	out := &writer{to: bufio.NewWriterSize(w, 64<<10)}
	out.text(`{"status":"success","data":`)
	if all.result != nil {
		out.result(all.result)
	} else {
		out.value(all.data)
	}
	for _, more := range []struct {
		name string
		list []string
	}{{"warnings", all.warnings}, {"infos", all.infos}} {
		if len(more.list) > 0 {
			out.text(`,"` + more.name + `":`)
			out.value(more.list)
		}
	}
	out.text("}\n")
	if out.err == nil {
		out.err = out.to.Flush()
	}
	if out.err != nil {
		panic(http.ErrAbortHandler) // so that half an answer is not taken for a whole one
	}
	return nil
}

// writer writes JSON until the first error.
type writer struct {
	to  *bufio.Writer
	err error
}

func (w *writer) text(s string) {
	if w.err == nil {
		_, w.err = w.to.WriteString(s)
	}
}

func (w *writer) value(v any) {
	if w.err != nil {
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		w.err = err
		return
	}
	_, w.err = w.to.Write(text)
}

// result writes what the engine gave.
func (w *writer) result(r *promql.Result) {
	w.text(`{"resultType":"` + string(r.Value.Type()) + `","result":`)
	switch v := r.Value.(type) {
	case promql.Matrix:
		list(w, v)
	case promql.Vector:
		list(w, v)
	default:
		w.value(v)
	}
	w.text("}")
}

// list writes an array one element at a time: marshalled whole, a large answer would be in memory a second time.
func list[T any](w *writer, all []T) {
	w.text("[")
	for i := range all {
		if i > 0 {
			w.text(",")
		}
		w.value(all[i])
	}
	w.text("]")
}
