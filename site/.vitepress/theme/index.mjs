import DefaultTheme from 'vitepress/theme';
import { h } from 'vue';
import './diagrams.css';
import { mermaidOf } from './mermaid.mjs';

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('Mermaid', mermaidOf(h));
  },
};
