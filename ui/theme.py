"""How the page looks and how its server behaves: Streamlit's options, and a few rules of style."""

from typing import Any

_COMMON = {
    "theme.baseRadius": "8px",
    "theme.showWidgetBorder": True,
    "theme.linkUnderline": True,
    "theme.headingFontSizes": ["1.75rem", "1.35rem", "1.15rem", "1rem", "1rem", "1rem"],
    "theme.light.primaryColor": "#1f5f8b",
    "theme.light.backgroundColor": "#ffffff",
    "theme.light.secondaryBackgroundColor": "#f3f5f7",
    "theme.light.textColor": "#1d2329",
    "theme.light.linkColor": "#1f5f8b",
    "theme.dark.primaryColor": "#6db3e2",
    "theme.dark.backgroundColor": "#15191d",
    "theme.dark.secondaryBackgroundColor": "#20262c",
    "theme.dark.textColor": "#e6eaee",
    "theme.dark.linkColor": "#6db3e2",
}


def options(*, host: str, port: int, open_browser: bool, max_upload_mb: int) -> dict[str, Any]:
    """Streamlit's options, by their dotted names."""
    return {
        **_COMMON,
        "server.address": host,
        "server.port": port,
        "server.headless": not open_browser,
        "server.maxUploadSize": max_upload_mb,
        "server.fileWatcherType": "none",
        "server.showEmailPrompt": False,
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "runner.magicEnabled": False,
        "global.developmentMode": False,
    }


STYLE = """
<style>
/* A page for work, not a poster: less air above, rows that wrap in a narrow window. */
[data-testid="stMainBlockContainer"] { padding-top: 3.25rem; padding-bottom: 3rem; }
.gt { overflow-wrap: anywhere; unicode-bidi: plaintext; }
.gt-muted { opacity: .75; font-size: .875rem; }
.gt-title { font-weight: 600; }
.gt-pre { white-space: pre-wrap; }
.gt-quote { border-inline-start: 3px solid #1f7fbf; padding-inline-start: .75rem; }
.gt-problem { border-inline-start: 3px solid #d9822b; padding-inline-start: .75rem; }
.gt-lit { background: color-mix(in srgb, #f2c230 22%, transparent); border-radius: 4px;
  border-inline-start: 3px solid #d9a21b; padding-inline-start: .6rem; }
.gt-part { margin-block: 0 .9rem; }
.gt-tag { display: inline-block; margin: .15rem .35rem 0 0; padding: 0 .5rem; font-size: .8rem;
  border: 1px solid color-mix(in srgb, currentColor 35%, transparent); border-radius: 1rem; }
.gt-table { border-collapse: collapse; width: 100%; font-size: .9rem; }
.gt-table th, .gt-table td { text-align: start; vertical-align: top;
  padding: .35rem .75rem .35rem 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
.gt-table thead th { font-weight: 400; opacity: .7; }
.gt-table tbody th { font-weight: 600; min-width: 7rem; width: 25%; }
.gt-table td .gt { white-space: pre-line; }
/* White letters on the light blue of the dark theme are too faint. */
[data-testid="stBaseButton-primary"], [data-testid="stBaseButton-primaryFormSubmit"] {
  color: light-dark(#ffffff, #0d1317); }
</style>
"""
