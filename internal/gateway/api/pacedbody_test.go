package api

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
)

// deadlines is a response writer whose connection takes read deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// A body has a bound in time wherever one is read, so that slow clients do not hold the
// slots of all others. It is off again afterwards, and its end is said as such.
func TestBodiesArePaced(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(http.ResponseWriter, *http.Request) error{
		"JSON":  func(w http.ResponseWriter, r *http.Request) error { return body(w, r, &struct{}{}) },
		"whole": func(w http.ResponseWriter, r *http.Request) error { _, err := whole(w, r, 100); return err },
		"timer": func(w http.ResponseWriter, r *http.Request) error { return timerBody(w, r, &struct{}{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			if err := read(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))); err != nil {
				t.Fatal(err)
			}
			if len(w.set) < 2 || w.set[0].IsZero() || !w.set[len(w.set)-1].IsZero() {
				t.Errorf("deadlines %v, want some and then none", w.set)
			}
			slow := io.MultiReader(strings.NewReader("{"), failing{os.ErrDeadlineExceeded})
			err := read(w, httptest.NewRequest(http.MethodPost, "/", slow))
			if refused := new(request.Error); !errors.As(err, &refused) || refused.Code != "too_slow" {
				t.Errorf("a body that came too slowly: %v", err)
			}
		})
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
