import {render} from 'preact';
import './core';
import {App} from './app';
import './style.css';
import './erase/erase.css';
import './search/search.css';
import {applyTheme} from './theme';
import {takeFromAddress} from './token';

takeFromAddress();
applyTheme();
render(<App />, document.body);
