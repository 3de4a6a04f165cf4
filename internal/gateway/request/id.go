package request

import (
	"context"
	"crypto/rand"
	"net/http"
	"regexp"
)

// HeaderID names a request, in the request and in the answer.
const HeaderID = "X-Request-Id"

var idRule = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

type idKey struct{}

// WithID gives each request an id: the client's own where it is a plain word, else a
// random one. The answer's header has it.
func WithID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(HeaderID)
		if !idRule.MatchString(id) {
			id = rand.Text()
		}
		w.Header().Set(HeaderID, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), idKey{}, id)))
	})
}

// ID returns the id of a request; "" without WithID.
func ID(r *http.Request) string {
	id, _ := r.Context().Value(idKey{}).(string)
	return id
}
