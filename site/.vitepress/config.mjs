import { defineConfig } from 'vitepress';
import { luaFiles } from '../../scripts/lua-files.mjs';
import { shims } from '../explorer/shims/plugin.mjs';
import { slugOf } from '../src/slugs.mjs';
import { sidebar } from '../src/sidebar.mjs';
import { terms } from '../src/terms.mjs';

const base = process.env.SITE_BASE ?? '/';

export default defineConfig({
  title: 'Holdfast',
  description: 'Distributed locks for NestJS on Redis',
  base,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}mark.svg` }]],
  srcDir: 'pages',
  cleanUrls: true,
  lastUpdated: false,
  // The links of the pages are checked: VitePress checks pages, src/anchors.mjs headings.
  ignoreDeadLinks: [/^https?:\/\/localhost/],
  // The explorer runs lib/ and test/techniques/simulation/, which are beside this folder.
  vite: { plugins: [shims(), luaFiles], server: { fs: { allow: ['..'] } } },
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark' },
    // As on GitHub, so that one link fits both.
    anchor: { slugify: slugOf },
    config(md) {
      md.use(terms);
      const fence = md.renderer.rules.fence;
      md.renderer.rules.fence = (tokens, index, ...rest) =>
        tokens[index].info.trim() === 'mermaid'
          ? `<Mermaid source="${encodeURIComponent(tokens[index].content)}" />`
          : fence(tokens, index, ...rest);
    },
  },
  themeConfig: {
    logo: '/mark.svg',
    sidebar,
    nav: [
      { text: 'Guide', link: '/getting-started' },
      { text: 'Guarantees', link: '/guarantees' },
      { text: 'What happens when…', link: '/internals/explorer' },
      { text: 'API', link: '/api/' },
    ],
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: 'https://github.com/nestjs-holdfast/nestjs-holdfast' }],
  },
});
