import DefaultTheme from 'vitepress/theme';
import { defineAsyncComponent, h } from 'vue';
import './colours.css';
import './diagrams.css';
import './landing.css';
import { mermaidOf } from './mermaid.mjs';
import './term.css';
import { Term } from './term.mjs';

// The library and the simulation come with it: no other page loads them.
const Explorer = defineAsyncComponent(() => import('../../explorer/Explorer.vue'));

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Mermaid', mermaidOf(h));
    app.component('Explorer', Explorer);
    app.component('Term', Term);
  },
};
