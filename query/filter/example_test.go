package filter_test

import (
	"fmt"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

func ExampleParse() {
	topic := schemas.NewTopic("app")
	e, err := filter.Parse("user_id = 'u-7'", &topic)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e)
	_, params := e.SQL() // values go to ClickHouse as parameters, never as text
	fmt.Println(len(params), "parameter")
	// Output:
	// user_id = 'u-7'
	// 1 parameter
}
