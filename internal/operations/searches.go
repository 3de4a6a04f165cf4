package operations

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
)

var searchName = Param{Name: "search", In: Path, Required: true, Help: "the name of a `SEARCH`"}

// Saved searches, and saved charts, which are of another kind. What one filters by may be a name, so only those see it who may read its
// topics, all of their rows; of charts that name none, every topic.
var (
	SavedSearches = Operation{
		Method: http.MethodGet, Path: "/v1/searches", Summary: "The saved searches and charts of topics that the token may read, by name", Right: Right{access.Read, OfSome}, Rows: AllRows, Access: Reads,
		Answers: ok("SavedSearches"),
	}
	SaveSearch = Operation{
		Method: http.MethodPut, Path: "/v1/searches/{search}", Summary: "Save a search, or a page of charts, of topics that the token may read, in place of the one of its name", Right: Right{access.Save, OfSome}, Rows: AllRows, Access: Writes,
		Params: []Param{searchName}, Body: sends("SavedSearch"), Answers: ok("SavedSearch"), Refused: []int{http.StatusConflict},
	}
	RemoveSearch = Operation{
		Method: http.MethodDelete, Path: "/v1/searches/{search}", Summary: "Remove a saved search, or saved charts", Right: Right{access.Save, OfSome}, Rows: AllRows, Access: Writes,
		Params: []Param{searchName}, Answers: []Answer{{Code: http.StatusNoContent}},
	}
)
