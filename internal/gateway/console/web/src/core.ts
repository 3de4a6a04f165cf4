// What a first visit loads. Each part that is loaded later imports it for its effect: then all files of the page need all of it,
// and the build makes one file of it, which compresses better than many. What is small and of several parts is in it too.
import './app';
import './kinds/amount';
import './kinds/controls';
import './search/topics';
import './theme';
import './token';
import './typed';
