"""Where each person has a library of their own: in and out, by Streamlit's OpenID Connect."""

import streamlit as st

from ui.safe import inline


def login() -> None:
    """What is shown to somebody who has not logged in."""
    st.title("gistree")
    st.write("Each person has a library of their own here.")
    st.button("Log in", type="primary", icon=":material/login:", on_click=st.login)


def who() -> None:
    """Who is here, and the way out."""
    name = st.user.get("name") or st.user.get("email") or st.user["sub"]
    with st.container(horizontal=True, horizontal_alignment="right", vertical_alignment="center"):
        st.html(inline(str(name), kind="gt-muted"), width="content")
        st.button("Log out", type="tertiary", icon=":material/logout:", on_click=st.logout)
