package operations

// All lists the operations, in the order of Ways.
var All = func() (all []*Operation) {
	for _, way := range Ways {
		all = append(all, way.Routes...)
	}
	return all
}()
