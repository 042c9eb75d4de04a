import DefaultTheme from 'vitepress/theme';
import { defineAsyncComponent, h } from 'vue';
import './diagrams.css';
import { mermaidOf } from './mermaid.mjs';

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Mermaid', mermaidOf(h));
    // The library and the simulation come with it: no other page loads them.
    const explorer = () => import('../../explorer/Explorer.vue');
    app.component('Explorer', defineAsyncComponent(explorer));
  },
};
