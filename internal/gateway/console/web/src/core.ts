// What a first visit loads. Each part that is loaded later imports it for its effect: then all files of the page need all of it,
// and the build makes one file of it, which compresses better than many.
import './app';
import './theme';
import './token';
