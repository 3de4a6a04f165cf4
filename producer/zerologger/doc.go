// Package zerologger writes the lines of zerolog as events.
//
//	log := zerolog.New(zerologger.New(p)).With().Timestamp().Logger()
//
// It is a package of its own. So programs that log by other libraries do not link
// zerolog. A line becomes an event as Producer.LineEvent says. Write never fails and never
// waits. After a fatal line, or a panic's, WriteLevel waits until it is stored, for five
// seconds at most.
package zerologger
