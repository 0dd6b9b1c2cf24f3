// page_unit: everything of the page that needs no browser.
import './sse_test.mjs';
import './api_test.mjs';
import './markdown_test.mjs';
import './build_test.mjs';
