"""Prints the text of each URL of its command line, as Chromium shows it under Selenium through a session of a pool."""

import os
import sys
from urllib.parse import urlsplit

import hopline
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By

with (
    hopline.AgentClient(store=hopline.FolderStore("hopline-records"), daily_cap_usd=20) as agent,
    agent.open_pool("shop", size=1, session_type="dynamic", product_no="dynamic-world", quantity=0.5, protocol="socks5") as pool,
):
    for url in sys.argv[1:]:
        with pool.acquire(target=urlsplit(url).hostname) as lease, lease.proxy.on_loopback() as port:
            options = webdriver.ChromeOptions()
            options.add_argument("--headless=new")
            options.add_argument(f"--proxy-server={port}")
            options.add_argument("--proxy-bypass-list=<-loopback>")  # for pages of this machine, too
            options.binary_location = os.environ.get("HOPLINE_CHROMIUM", "")  # the browser of this machine, if it is named
            driver = webdriver.Chrome(options=options)
            try:
                driver.get(url)
                lease.observe("captcha" if "captcha" in driver.page_source else 200)
                print(url, driver.find_element(By.TAG_NAME, "body").text)
            except WebDriverException as error:
                lease.observe(error)
                raise
            finally:
                driver.quit()
