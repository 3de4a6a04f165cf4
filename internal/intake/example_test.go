package intake_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/almanac-events/almanac/internal/intake"
)

func ExampleReader() {
	lines := `{"ts":"2026-11-22T12:00:00Z","level":"info","message":"started"}
not JSON
{"ts":"2026-11-22T12:00:01Z","level":"warn","message":"slow"}
`
	r := intake.NewReader(strings.NewReader(lines), intake.Options{Format: intake.FormatNDJSON})
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if rec.Err != nil {
			fmt.Printf("line %d is refused\n", rec.Line)
			continue
		}
		fmt.Println(rec.Event.Level, rec.Event.Message)
	}
	// Output:
	// info started
	// line 2 is refused
	// warn slow
}
