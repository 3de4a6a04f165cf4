package lokiread

import (
	"bufio"
	"encoding/json"
	"net/http"
)

// write answers a request. An answer that breaks off ends the connection, so that half of it is not taken for a whole one.
func write(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	to := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	err := enc.Encode(answer)
	if err == nil {
		err = to.Flush()
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}
