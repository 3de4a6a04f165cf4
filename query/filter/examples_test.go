package filter_test

import (
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// An error says where the text is wrong.
func ExampleParse_error() {
	topic := schemas.NewTopic("app")
	_, err := filter.Parse("level = 'error' AND AND", &topic)
	fmt.Println(errors.Is(err, filter.ErrSyntax))
	// Output:
	// true
}

// What a program did not write itself goes into a filter as a quoted text.
func ExampleQuote() {
	topic := schemas.NewTopic("app")
	e, err := filter.Parse("message contains "+filter.Quote("it's done"), &topic)
	fmt.Println(e, err)
	// Output:
	// message contains 'it\'s done' <nil>
}

// A mask says what each event of an answer has.
func ExampleParseFields() {
	topic := schemas.NewTopic("app")
	m, err := filter.ParseFields([]string{"ts", "level", "attributes.actor.login"}, &topic)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Names())
	// Output:
	// [ts level attributes.actor.login]
}
