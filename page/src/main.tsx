// The page begins here.
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import { App } from "./app";
import { Feed } from "./feed";
import { Store } from "./store";
import "./style/base.css";
import "./style/page.css";
import "./style/parts.css";

const store = new Store();
const feed = new Feed(store);
const holder = document.getElementById("page");
if (holder) render(<App store={store} feed={feed} />, holder);
feed.start();
